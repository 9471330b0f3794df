// Options that choose how `monet backward` costs a pair of gradients; the command and its studies
// use them.
#include "options/backward_options.hpp"

#include "base/shared/text.hpp"
#include "options/command_line.hpp"

#include "monet/core_cost/backward.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::cli {

namespace {

/// Enumerator whose value is the position of a word in its list.
template <class Enumeration>
Enumeration at_place(const std::vector<std::string>& words, const std::string& word) {
  const auto found = std::ranges::find(words, word);
  internal_check(found != words.end(), "a word of the list");
  return static_cast<Enumeration>(found - words.begin());
}

const Core& array_core(const Chip& chip) {
  const auto found = std::ranges::find_if(chip.cores, is_npu_core);
  internal_check(found != chip.cores.end(), "npu_machine() has found an array");
  return *found;
}

} // namespace

void BackwardChoices::add_to(Command& command) {
  const std::string group = "Cost of a pair of gradients";
  const auto add = [&](const char* name, std::string* word, const char* help,
                       const std::vector<std::string>& words) {
    command.add(name, word, help, {.choices = words, .group = group});
  };
  add("--tiles", &tiles, "Tile size: the array, any size, or divisors of the dimensions",
      kTileWords);
  add("--keep", &keep,
      "On-chip data of techniques with a fixed order: the fastest choice, or factors between steps "
      "and incomplete sums",
      kKeepWords);
  add("--major", &major,
      "Innermost loop of dx-major and dw-major: results in their order, or all uses of a dY tile",
      kMajorWords);
  add("--timing", &timing,
      "Cycle model: systolic array (os, ws, is: stationary results, right or left factors), core "
      "cost model, or none",
      kTimingWords);
  add("--im2col", &im2col,
      "Data moved for inputs of convolutions: the expanded matrix, or the feature map",
      kIm2colWords);
  add("--rule", &rule, "Rule of algorithm-1 to choose dx-major or dw-major", kRuleWords);
  const auto bits = [&](const char* name, std::int64_t* number, const char* help, double least) {
    command.add(name, number, help, {.range = Range{least, kMaxGemmElementBits}, .group = group});
  };
  bits("--element-bits", &element_bits, "Bits per element of every tensor", 1);
  bits("--partial-bits", &partial_bits, "Bits of an incomplete sum", 1);
  bits("--state-bits", &state_bits,
       "Bits of optimiser state per weight, for joint-update (Adam: 64)", 0);
  command.add("--pipelined", &pipelined,
              "Fill the systolic array with a tile while the previous one drains",
              {.group = group});
  command.add("--wait-for-writes", &wait_for_writes, "Stall the array until results are written",
              {.group = group});
  command.add("--single-buffer", &single_buffer,
              "Use the whole memory for one step; default: one half", {.group = group});
}

BackwardOptions BackwardChoices::options(const Chip& chip, NpuMachine& machine) const {
  machine.double_buffered = !single_buffer;
  BackwardOptions options;
  options.tiles = at_place<TilePolicy>(kTileWords, tiles);
  options.retention = at_place<Retention>(kKeepWords, keep);
  options.major_loops = at_place<MajorLoops>(kMajorWords, major);
  options.timing = at_place<TileTiming>(kTimingWords, timing);
  options.im2col = at_place<Im2col>(kIm2colWords, im2col);
  options.rule = at_place<MajorRule>(kRuleWords, rule);
  options.element_bits = element_bits;
  options.partial_bits = partial_bits;
  options.state_bits = state_bits;
  options.fill_and_drain = !pipelined;
  options.hide_writes = !wait_for_writes;
  if (options.timing == TileTiming::core)
    options.tile_cycles = core_tile_cycles(array_core(chip), options);
  return options;
}

Technique technique_option(const std::string& name) {
  const std::optional<Technique> technique = technique_named(name);
  if (!technique)
    throw InputError({"--technique"}, fmt::format("there is no technique '{}'", name),
                     nearest_name_hint(name, technique_names()));
  return *technique;
}

} // namespace monet::cli
