// Options of `monet formats`: which of its four questions is asked, and the formats, roundings and
// units of the library that they select.
#pragma once

#include "report/shared/formats_result.hpp"

#include "monet/numerics/blocks.hpp"
#include "monet/numerics/mac.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet::cli {

struct Command;

/// Question that the command line asks.
enum class FormatsQuestion { formats, round, quantise, gemm };

/// Options for rounding numbers, alone or in blocks.
struct RoundingArguments {
  std::string format;
  std::string block;
  std::vector<std::int64_t> axes;
  std::string scale_mode = "floor";
  std::string rounding = "even";
  std::uint64_t seed = 0;
  bool saturate = false;
  bool flush_subnormals = false;
  bool symmetric = false;
  bool full_range = false;

  void add_to(Command& command);
  /// Rounding of these options. Throws InputError with the option's name for unknown words.
  Rounding parsed_rounding() const;
  /// Format that `text`, the value of `option`, names, with the block and scale mode of the other
  /// options.
  NamedTensorFormat parsed_format(const std::string& text, const char* option) const;
  /// Format for tensors of this shape. Throws InputError if the shape lacks the axes or rows of its
  /// blocks.
  NamedTensorFormat parsed_format(std::span<const std::int64_t> shape,
                                  const std::string& origin) const;
};

/// Options of an emulated unit.
struct UnitArguments {
  std::string operands;
  std::string product; ///< --mul
  std::string sum;     ///< --acc
  std::string variant;
  bool fma = false;
  std::int64_t lanes = 1;
  std::string instructions = "best";
  int jobs = 1;

  void add_to(Command& command);
  GemmOptions options() const;
};

struct ParsedUnit {
  Mac mac;
  std::optional<NamedTensorFormat> blocks; ///< block format of both operands
  bool hybrid = false;
};
/// Emulated unit that the options describe; `command` records which options are given. Throws
/// UsageError for options that exclude each other, and InputError for names that are unknown or
/// cannot be emulated.
ParsedUnit parse_unit(const UnitArguments& unit, const RoundingArguments& numbers,
                      const Command& command);

struct FormatsArguments {
  std::vector<std::string> names;
  std::vector<std::string> round;
  std::string quantise;
  std::vector<std::string> gemm;
  std::string before;
  std::string output;
  std::string scales;
  std::string codes;
  std::string json;
  RoundingArguments numbers;
  UnitArguments unit;

  void add_to(Command& command);
  FormatsQuestion question(const Command& command) const;
  /// Throws UsageError for options that belong to other questions.
  void check(const Command& command) const;
  /// First option that the question requires and that is missing; otherwise empty.
  std::string missing(const Command& command) const;
};

/// Format with this name. Throws InputError with the nearest name if it is unknown.
NamedTensorFormat tensor_format_named(const std::string& name, const char* option);

/// Adds `--instructions`, under the heading `group` in --help unless it is empty.
void add_instructions(Command& command, std::string& word, std::string_view group = {});
/// Vector instructions with this name. Throws InputError if the machine lacks them.
Instructions instructions_of(const std::string& word);

} // namespace monet::cli
