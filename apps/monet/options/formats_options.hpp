// The options of `monet formats`: which of its four questions is asked, and formats, roundings and
// units as the library has them.
#pragma once

#include "monet/numerics/blocks.hpp"
#include "monet/numerics/mac.hpp"
#include "monet/report/formats_result.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet::cli {

struct Command;

/// What the command line asks for.
enum class FormatsQuestion { formats, round, quantise, gemm };

/// How numbers are rounded, alone or in blocks.
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
  /// InputError naming the option for words that the library does not know.
  Rounding parsed_rounding() const;
  /// `text` is the value of `option`; with the block and scale mode of the others.
  NamedTensorFormat parsed_format(const std::string& text, const char* option) const;
  /// Of tensors of this shape, which have the axes and rows of blocks, or InputError.
  NamedTensorFormat parsed_format(std::span<const std::int64_t> shape,
                                  const std::string& origin) const;
};

/// An emulated unit.
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
  std::optional<NamedTensorFormat> blocks; ///< of both operands
  bool hybrid = false;
};
/// The unit of these options; `command` says which were given. UsageError for those that exclude
/// each other, InputError for what the library does not know or cannot emulate.
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
  /// UsageError for options of other questions.
  void check(const Command& command) const;
  /// The first option that the question lacks; empty: none.
  std::string missing(const Command& command) const;
};

/// A named format, or InputError with the nearest name.
NamedTensorFormat tensor_format_named(const std::string& name, const char* option);

/// Adds `--instructions`, under a heading of --help if there is one.
void add_instructions(Command& command, std::string& word, std::string_view group = {});
/// What the word says; InputError where this machine has none of them.
Instructions instructions_of(const std::string& word);

} // namespace monet::cli
