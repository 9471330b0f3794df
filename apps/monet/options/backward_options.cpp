#include "options/backward_options.hpp"

#include "base/shared/text.hpp"
#include "options/command_line.hpp"

#include "monet/core_cost/backward.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::cli {

namespace {

/// The place of a word in its list, as the enumeration has it.
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
  const std::string group = "How a pair is costed";
  const auto add = [&](const char* name, std::string* word, const char* help,
                       const std::vector<std::string>& words) {
    command.add(name, word, help, {.choices = words, .group = group});
  };
  add("--tiles", &tiles, "A tile fills the array, or is searched for (among those that divide)",
      kTileWords);
  add("--keep", &keep,
      "What techniques with given orders keep on the chip: whatever is fastest, or factors from "
      "one "
      "step to the next and incomplete sums",
      kKeepWords);
  add("--major", &major,
      "Innermost loop of dx-major and dw-major: as results are made, or what uses a tile of dY",
      kMajorWords);
  add("--timing", &timing,
      "Cycles of a tile: a systolic array that keeps results, right factors or left factors, or "
      "the core cost model, or none",
      kTimingWords);
  add("--im2col", &im2col,
      "What moving inputs of convolutions moves: the expanded matrix, or the feature map",
      kIm2colWords);
  add("--rule", &rule, "How algorithm-1 chooses between dx-major and dw-major", kRuleWords);
  const auto bits = [&](const char* name, std::int64_t* number, const char* help, double least) {
    command.add(name, number, help, {.range = Range{least, kMaxGemmElementBits}, .group = group});
  };
  bits("--element-bits", &element_bits, "Of an element of any tensor", 1);
  bits("--partial-bits", &partial_bits, "Of a sum that is not complete", 1);
  bits("--state-bits", &state_bits,
       "Of an optimiser's state per weight, for joint-update (Adam: 64)", 0);
  command.add("--pipelined", &pipelined,
              "The systolic array is filled with a tile while the one before drains",
              {.group = group});
  command.add("--wait-for-writes", &wait_for_writes, "The array waits for results to be written",
              {.group = group});
  command.add("--single-buffer", &single_buffer,
              "All of the memory holds what a step works on, instead of one half",
              {.group = group});
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
