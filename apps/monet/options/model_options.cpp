// Options of `monet core` that choose the core cost model (model_options.hpp).
#include "options/model_options.hpp"

#include "base/shared/text.hpp"
#include "console.hpp"
#include "options/command_line.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace monet::cli {

namespace {

constexpr const char* kZigzag = "zigzag-3.8";
constexpr int kMaxGenerated = 1000;
constexpr int kMaxUnrollings = 100000;

struct Choice {
  const char* name;
  bool ModelChoices::*field;
  const char* meaning; ///< meaning of "on"
};

constexpr std::array kChoices{
    Choice{"first-partial-sums-free", &ModelChoices::first_partial_sums_free,
           "the first pass over partial sums does not read them back"},
    Choice{"reserve-double-buffers", &ModelChoices::reserve_double_buffers,
           "slices that are refilled while in use need twice their size"},
    Choice{"port-stalls-add", &ModelChoices::port_stalls_add, "stalls of different ports add up"},
    Choice{"half-shared-loads-add", &ModelChoices::half_shared_loads_add,
           "loads over pairs of memories with one shared end add up"},
    Choice{"loads-keep-minimum", &ModelChoices::loads_keep_minimum,
           "prefetching hides only the part of a load that may be hidden"},
    Choice{"gaps-not-fetched", &ModelChoices::gaps_not_fetched,
           "strides longer than loops do not fetch gaps"},
    Choice{"widest-step", &ModelChoices::widest_step,
           "latency is that of the widest step of an uneven unrolling"},
    Choice{"bypass-narrow-memories", &ModelChoices::bypass_narrow_memories,
           "memories narrower than an element are bypassed"},
    Choice{"part-words-cost", &ModelChoices::part_words_cost,
           "data that fill part of a word cost part of its energy"},
    Choice{"rows-shift-at-their-loop", &ModelChoices::rows_shift_at_their_loop,
           "rows of an array that computes in memory shift at the loop of their axis"},
    Choice{"instruction-costs", &ModelChoices::instruction_costs,
           "instructions of processors, waves of tiles and starts of kernels take time"},
    Choice{"free-unrolling", &ModelChoices::free_unrolling,
           "unrollings outside the dataflow are tried"}};

const Choice& choice_named(const std::string& name) {
  const auto found =
      std::ranges::find_if(kChoices, [&](const Choice& choice) { return choice.name == name; });
  if (found != kChoices.end())
    return *found;
  const std::string hint = nearest_name_hint(name, names_of(kChoices));
  throw UsageError(fmt::format("--choice: '{}' is not a choice of the model{}{}", name,
                               hint.empty() ? "" : "; ",
                               hint.empty() ? "; --help lists them" : hint));
}

} // namespace

void ModelArguments::add_to(Command& command) {
  command.add("--model", &model, "Core model: ours, or ZigZag's reproduced exactly",
              {.choices = {"monet", kZigzag}});
  command.add("--choice", &choices, "Change one choice of the model, listed below; may be repeated",
              {.type = "NAME=on|off", .repeated = true});
  command.add(
      "--allocation", &allocation,
      "Loops at which operands that share a memory are cut: different for each, or the same",
      {.choices = {"uneven", "even"}});
  command.add("--generated", &generated,
              "Maximum number of unrollings tried if the mapping leaves array dimensions open",
              {.range = Range{1, kMaxGenerated}});
  command.add("--unrollings", &unrollings,
              "Number of free unrollings tried if the mapping does not fix them; above 12: "
              "wherever they may help",
              {.range = Range{0, kMaxUnrollings}});
  command.add("--mixed", &mixed, "Allow several layer dimensions on one generated array dimension");
  command.add("--data-locality", &data_locality,
              "Keep data in lower memories between layers if they fit; needs zigzag-3.8");
}

void ModelArguments::apply(CoreCostOptions& options) const {
  options.model = is_zigzag() ? ModelChoices::zigzag_3_8() : ModelChoices{};
  for (const std::string& text : choices) {
    const std::size_t equals = text.find('=');
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (value != "on" && value != "off")
      throw UsageError(fmt::format("--choice: '{}' is not of the form name=on or name=off", text));
    options.model.*choice_named(text.substr(0, equals)).field = value == "on";
  }
  options.even_allocation = allocation == "even";
  options.generated_unrollings = generated;
  options.mixed_unrollings = mixed;
  options.free_unrollings = unrollings;
}

std::string describe_choices() {
  std::string text = "Choices (all of ZigZag's are off):\n";
  for (const Choice& choice : kChoices)
    text += fmt::format("  {:<24}{} [{}]\n", choice.name, choice.meaning,
                        ModelChoices{}.*choice.field ? "on" : "off");
  return text;
}

} // namespace monet::cli
