// Options of `monet formats`: parses formats, roundings and emulated units (formats_options.hpp).
#include "options/formats_options.hpp"

#include "base/shared/text.hpp"
#include "console.hpp"
#include "options/command_line.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <array>

namespace monet::cli {

namespace {

constexpr unsigned bit(FormatsQuestion question) {
  return 1U << static_cast<unsigned>(question);
}
constexpr unsigned kFormats = bit(FormatsQuestion::formats);
constexpr unsigned kRound = bit(FormatsQuestion::round);
constexpr unsigned kQuantise = bit(FormatsQuestion::quantise);
constexpr unsigned kGemm = bit(FormatsQuestion::gemm);

struct QuestionOption {
  const char* option;
  FormatsQuestion question;
};
constexpr double kMaxLanes = 1 << 20;
constexpr std::array kQuestions{QuestionOption{"--round", FormatsQuestion::round},
                                QuestionOption{"--quantise", FormatsQuestion::quantise},
                                QuestionOption{"--gemm", FormatsQuestion::gemm},
                                QuestionOption{"formats", FormatsQuestion::formats}};

struct OptionQuestions {
  const char* option;
  unsigned questions;
};
constexpr std::array kBelongs{OptionQuestions{"--format", kRound | kQuantise},
                              OptionQuestions{"--block", kRound | kQuantise | kGemm},
                              OptionQuestions{"--axes", kQuantise},
                              OptionQuestions{"--scale-mode", kRound | kQuantise | kGemm},
                              OptionQuestions{"--rounding", kRound | kQuantise | kGemm},
                              OptionQuestions{"--seed", kRound | kQuantise | kGemm},
                              OptionQuestions{"--saturate", kRound | kQuantise | kGemm},
                              OptionQuestions{"--flush-subnormals", kRound | kQuantise | kGemm},
                              OptionQuestions{"--symmetric", kRound | kQuantise | kGemm},
                              OptionQuestions{"--full-range", kRound | kQuantise},
                              OptionQuestions{"--before", kQuantise},
                              OptionQuestions{"--output", kQuantise | kGemm},
                              OptionQuestions{"--scales", kQuantise},
                              OptionQuestions{"--codes", kQuantise},
                              OptionQuestions{"--operands", kGemm},
                              OptionQuestions{"--mul", kGemm},
                              OptionQuestions{"--acc", kGemm},
                              OptionQuestions{"--variant", kGemm},
                              OptionQuestions{"--fma", kGemm},
                              OptionQuestions{"--lanes", kGemm},
                              OptionQuestions{"--instructions", kGemm},
                              OptionQuestions{"--jobs", kGemm}};

/// Names of the options that ask these questions: "--round, --quantise or --gemm".
std::string option_names_of(unsigned questions) {
  std::vector<std::string> names;
  for (const QuestionOption& one : kQuestions) {
    if ((bit(one.question) & questions) != 0)
      names.emplace_back(one.option);
  }
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

void set_multiplier(Mac& mac, const UnitArguments& unit, const Command& command) {
  if (command.given("--variant"))
    mac.multiplier = *multiplier_named(unit.variant);
  if (!unit.product.empty() && unit.product != "exact")
    return;
  if (command.given("--variant") && mac.multiplier != Multiplier::exact)
    throw UsageError("--variant requires a format in --mul");
  mac.multiplier = Multiplier::exact;
}

std::optional<NumberFormat> operands_named(const std::string& name) {
  if (name.empty())
    return std::nullopt;
  const auto format = parse_number_format(name);
  if (!format)
    throw InputError({"--operands"}, fmt::format("there is no number format '{}'", name),
                     nearest_name_hint(name, common_format_names()));
  if (!is_emulated(*format) || !fits_single(*format))
    throw InputError({"--operands"},
                     fmt::format("{} has numbers that single precision lacks", name));
  return format;
}

/// Sets the accumulator; requires the multiplier to be set.
void set_sum(ParsedUnit& parsed, const UnitArguments& unit, const Command& command) {
  const auto choice = parse_accumulator(unit.sum);
  if (!choice) {
    std::vector<std::string> known = common_format_names();
    known.insert(known.end(), {"exact", "hybrid"});
    throw InputError({"--acc"}, fmt::format("there is no format '{}'", unit.sum),
                     nearest_name_hint(unit.sum, known));
  }
  if (choice->format && !is_emulated(*choice->format))
    throw InputError({"--acc"},
                     fmt::format("{} has more than 32 bits, or 11 of exponent", unit.sum));
  parsed.hybrid = choice->hybrid;
  if (choice->hybrid && (command.given("--rounding") || command.given("--variant") ||
                         (!parsed.blocks && parsed.mac.multiplier != Multiplier::exact)))
    throw UsageError("--acc hybrid has exact products and truncates sums: leave out --rounding and "
                     "--variant, and set --mul to exact or a block format");
  set_accumulator(parsed.mac, *choice);
  if (!choice->hybrid || command.given("--lanes"))
    parsed.mac.lanes = static_cast<int>(unit.lanes);
}

} // namespace

NamedTensorFormat tensor_format_named(const std::string& name, const char* option) {
  const auto format = parse_tensor_format(name);
  if (!format)
    throw InputError({option}, fmt::format("there is no format '{}'", name),
                     nearest_name_hint(name, common_tensor_format_names()));
  if (!is_emulated(format->element))
    throw InputError({option}, fmt::format("{} has more than 32 bits, or 11 of exponent", name));
  return {name, *format};
}

void RoundingArguments::add_to(Command& command) {
  const std::string group = "Formats and rounding";
  command.add("--format", &format, "Number format, with or without blocks",
              {.type = "F", .group = group});
  command.add("--block", &block,
              "Shape of blocks that share a scale; default: the format's blocks. Without any, "
              "scales are powers of two",
              {.type = "ROWSxCOLUMNS", .group = group});
  command.add("--axes", &axes,
              "Axes of a block's rows and columns; negative: counted from the last axis (-2,-1)",
              {.type = "ROW,COLUMN", .group = group, .values = 2, .delimiter = ','});
  command.add("--scale-mode", &scale_mode,
              "Rule that chooses a block's power of two from its largest magnitude",
              {.choices = {"floor", "ceil", "even", "rceil"}, .group = group});
  command.add(
      "--rounding", &rounding,
      "Rounding mode: even, away, zero, stochastic[:BITS] (default 13 random bits) or hysteresis",
      {.type = "MODE", .group = group});
  command.add("--seed", &seed, "Seed of stochastic rounding", {.group = group});
  command.add("--saturate", &saturate,
              "Replace infinity by the largest number, as always in blocks", {.group = group});
  command.add("--flush-subnormals", &flush_subnormals, "Replace subnormal results by 0",
              {.group = group});
  command.add("--symmetric", &symmetric,
              "Exclude the most negative code of fixed-point formats, as always in blocks",
              {.group = group});
  command.add("--full-range", &full_range, "Use the most negative code in blocks, too",
              {.group = group});
}

Rounding RoundingArguments::parsed_rounding() const {
  const auto parsed = parse_rounding(rounding);
  if (!parsed) {
    const std::vector<std::string> known{"even", "away", "zero", "stochastic", "hysteresis"};
    throw InputError(
        {"--rounding"},
        fmt::format("unknown rounding mode '{}', or its random bits are not 1 to 24", rounding),
        nearest_name_hint(rounding, known));
  }
  Rounding result = *parsed;
  result.seed = seed;
  result.saturate = saturate;
  result.flush_subnormals = flush_subnormals;
  result.symmetric = symmetric;
  return result;
}

NamedTensorFormat RoundingArguments::parsed_format(const std::string& text,
                                                   const char* option) const {
  NamedTensorFormat named = tensor_format_named(text, option);
  auto& blocks = named.format.blocks;
  if (!block.empty()) {
    const auto shape = parse_block_shape(block);
    if (!shape)
      throw InputError(
          {"--block"},
          fmt::format("'{}' is not a shape: rows and columns, each at least 1, as in 1x32", block));
    if (!blocks)
      blocks.emplace();
    blocks->rows = shape->front();
    blocks->columns = shape->back();
  }
  if (blocks)
    blocks->mode = *scale_mode_named(scale_mode);
  else if (full_range)
    throw UsageError("--full-range requires a block format");
  if (full_range && symmetric)
    throw UsageError("--full-range and --symmetric exclude each other");
  return named;
}

NamedTensorFormat RoundingArguments::parsed_format(std::span<const std::int64_t> shape,
                                                   const std::string& origin) const {
  NamedTensorFormat named = parsed_format(format, "--format");
  auto& blocks = named.format.blocks;
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (!axes.empty() && !blocks)
    throw UsageError("--axes requires a block format");
  if (!axes.empty()) {
    for (const std::int64_t axis : axes) {
      if (axis < -rank || axis >= rank)
        throw InputError({"--axes"}, fmt::format("there is no axis {}: {} has shape [{}]", axis,
                                                 origin, fmt::join(shape, ", ")));
    }
    if ((axes[0] - axes[1]) % rank == 0)
      throw InputError({"--axes"}, fmt::format("{} and {} are the same axis", axes[0], axes[1]));
    blocks->row_axis = static_cast<int>(axes[0]);
    blocks->column_axis = static_cast<int>(axes[1]);
  }
  if (blocks && blocks->rows > 1 && rank < 2)
    throw InputError({block.empty() ? "--format" : "--block"},
                     fmt::format("blocks of {} x {} need two axes: {} has shape [{}]", blocks->rows,
                                 blocks->columns, origin, fmt::join(shape, ", ")));
  return named;
}

void FormatsArguments::add_to(Command& command) {
  command.add("formats", &names, "Formats to show in full; default: a table of common formats",
              {.type = "NAME"});
  command.add("--round", &round, "Numbers to round and show; --round=-inf for negative infinity",
              {.type = "X"});
  command.add("--quantise", &quantise, "Array to round", {.type = "IN.npy"});
  command.add("--gemm", &gemm, "Two matrices to multiply on an emulated unit",
              {.type = "A.npy B.npy", .values = 2});
  command.add("-o,--output", &output,
              "Result as 4-byte floats; 8-byte floats if the format exceeds single precision",
              {.type = "OUT.npy", .output = Output::file});
  command.add("--scales", &scales,
              "Scales of the blocks: bytes of powers of two (255: NaN), 4-byte floats, or codes",
              {.type = "S.npy", .output = Output::file});
  command.add("--codes", &codes, "Codes of the elements as unsigned integers",
              {.type = "C.npy", .output = Output::file});
  command.add("--json", &json, "Write the answer as JSON; -: standard output",
              {.type = "FILE", .output = Output::file});
  numbers.add_to(command);
  command.add("--before", &before, "Previously rounded numbers, for hysteresis",
              {.type = "FILE.npy", .group = "Formats and rounding"});
  unit.add_to(command);
}

FormatsQuestion FormatsArguments::question(const Command& command) const {
  for (const QuestionOption& one : kQuestions) {
    if (command.given(one.option))
      return one.question;
  }
  return FormatsQuestion::formats;
}

void FormatsArguments::check(const Command& command) const {
  const FormatsQuestion asked = question(command);
  std::string first;
  for (const QuestionOption& one : kQuestions) {
    if (!command.given(one.option))
      continue;
    if (!first.empty())
      throw UsageError(fmt::format("{} and {} exclude each other", first, one.option));
    first = one.option;
  }
  for (const OptionQuestions& one : kBelongs) {
    if (command.given(one.option) && (one.questions & bit(asked)) == 0)
      throw UsageError(fmt::format("{} is for {}", one.option, option_names_of(one.questions)));
  }
  if (!before.empty() && numbers.parsed_rounding().mode != RoundTo::hysteresis)
    throw UsageError("--before is for --rounding hysteresis");
  const std::array places{&output, &scales, &codes, &json};
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (*places[i] == "-" && places[i] != &json)
      throw UsageError("arrays are written to files, not to standard output");
    for (std::size_t j = 0; j < i; ++j) {
      if (!places[i]->empty() && *places[i] != "-" && *places[i] == *places[j])
        throw UsageError(fmt::format("two results would be written to '{}'", *places[i]));
    }
  }
}

std::string FormatsArguments::missing(const Command& command) const {
  const FormatsQuestion asked = question(command);
  const auto lacks = [&](const char* option) { return !command.given(option); };
  const bool one_format = asked == FormatsQuestion::round || asked == FormatsQuestion::quantise;
  const bool to_file = asked == FormatsQuestion::quantise || asked == FormatsQuestion::gemm;
  if (one_format && lacks("--format"))
    return "--format";
  if (asked == FormatsQuestion::gemm && lacks("--mul") && lacks("--fma") && unit.sum != "hybrid")
    return "--mul, or --fma,";
  if (asked == FormatsQuestion::gemm && lacks("--acc"))
    return "--acc";
  return to_file && lacks("--output") ? "--output" : "";
}

void UnitArguments::add_to(Command& command) {
  const std::string group = "Multiply-accumulate units";
  command.add("--operands", &operands,
              "Format to which operands are first rounded, to even; default: no rounding",
              {.type = "F", .group = group});
  command.add("--mul", &product, "Format of products; exact; or a block format for both operands",
              {.type = "F", .group = group});
  command.add("--acc", &sum, "Format of sums; exact, or hybrid (unverified)",
              {.type = "F", .group = group});
  command.add("--variant", &variant,
              "Treatment of operands and products in the multiplier, in the format of --mul",
              {.choices = {"rounded", "exact", "cfg1", "cfg2", "cfg3", "cfg4", "cfg5", "cfg6"},
               .group = group});
  command.add("--fma", &fma, "Add exact products with one rounding (fused multiply-add)",
              {.group = group});
  command.add("--lanes", &lanes,
              "Number of products added exactly before their sum is accumulated; in blocks, 1: a "
              "whole block",
              {.range = Range{1, kMaxLanes}, .group = group});
  add_instructions(command, instructions, group);
  command.add("--jobs", &jobs, "Number of threads (0: all cores); results do not depend on it",
              {.range = Range{0, 4096}, .group = group});
}

GemmOptions UnitArguments::options() const {
  return {.jobs = jobs, .instructions = instructions_of(instructions)};
}

ParsedUnit parse_unit(const UnitArguments& unit, const RoundingArguments& numbers,
                      const Command& command) {
  ParsedUnit parsed;
  parsed.mac.rounding = numbers.parsed_rounding();
  parsed.mac.fma = unit.fma;
  if (parsed.mac.rounding.mode == RoundTo::hysteresis)
    throw InputError({"--rounding"}, "sums have no previous value for hysteresis");
  set_multiplier(parsed.mac, unit, command);
  parsed.mac.operands = operands_named(unit.operands);
  if (unit.product.empty() || unit.product == "exact") {
    if (!numbers.block.empty())
      throw UsageError("--block requires a format in --mul");
  } else {
    const NamedTensorFormat format = numbers.parsed_format(unit.product, "--mul");
    parsed.mac.product = format.format.element;
    if (format.format.blocks) {
      parsed.blocks = format;
      if (command.given("--variant"))
        throw UsageError("products of formats in blocks are exact: leave out --variant");
      if (parsed.mac.operands)
        throw UsageError("--mul sets the block format of operands: leave out --operands");
      parsed.mac.multiplier = Multiplier::exact;
    }
  }
  set_sum(parsed, unit, command);
  const int lanes = parsed.mac.lanes;
  if (parsed.blocks && parsed.blocks->format.blocks->columns % lanes != 0)
    throw InputError({"--lanes"}, fmt::format("{} products at a time do not divide a block of {}",
                                              lanes, parsed.blocks->format.blocks->columns));
  if (const auto why = why_not_emulated(parsed.mac))
    throw InputError({command.given("--variant") ? "--variant" : "--acc"}, *why);
  return parsed;
}

void add_instructions(Command& command, std::string& word, std::string_view group) {
  command.add("--instructions", &word,
              "Vector instructions for the emulation; results do not depend on them",
              {.choices = {"best", "portable", "avx2", "avx512"}, .group = std::string(group)});
}

Instructions instructions_of(const std::string& word) {
  const Instructions instructions = *instructions_named(word);
  if (!is_available(instructions))
    throw InputError({"--instructions"},
                     fmt::format("this machine does not support {}; the best it supports is {}",
                                 word, name_of_best_instructions()));
  return instructions;
}

} // namespace monet::cli
