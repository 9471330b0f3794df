// Options that choose how a pair of gradients is costed, for `monet backward` and its studies.
#pragma once

#include "monet/core_cost/backward.hpp"

#include <string>
#include <vector>

namespace monet::cli {

struct Command;

inline const std::vector<std::string> kTileWords{"array", "searched", "divisors"};
inline const std::vector<std::string> kKeepWords{"chosen", "steps"};
inline const std::vector<std::string> kMajorWords{"results", "gradients"};
inline const std::vector<std::string> kTimingWords{"systolic-os", "systolic-ws", "systolic-is",
                                                   "core", "none"};
inline const std::vector<std::string> kIm2colWords{"expanded", "raw"};
inline const std::vector<std::string> kRuleWords{"dimensions", "sizes", "columns"};
inline const std::vector<std::string> kPartitionWords{"none", "auto", "weight-sharing",
                                                      "dy-sharing", "ifmap-sharing"};
inline constexpr std::int64_t kMaxGemmElementBits = 64;

/// Choices as words, each from its list of allowed words.
struct BackwardChoices {
  std::string tiles = "searched";
  std::string keep = "chosen";
  std::string major = "results";
  std::string timing = "systolic-os";
  std::string im2col = "expanded";
  std::string rule = "dimensions";
  std::int64_t element_bits = 16;
  std::int64_t partial_bits = 32;
  std::int64_t state_bits = 0;
  bool pipelined = false; ///< no filling and draining between tiles
  bool wait_for_writes = false;
  bool single_buffer = false;

  void add_to(Command& command);
  /// Backward options for these choices. Also sets the machine's double buffering; `chip` contains
  /// the core for TileTiming::core.
  BackwardOptions options(const Chip& chip, NpuMachine& machine) const;
};

/// Technique with this name. Throws InputError with the nearest name if it is unknown.
Technique technique_option(const std::string& name);

} // namespace monet::cli
