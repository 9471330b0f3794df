// Models changed chips, batches and formats for the table of what would help (what_if.hpp).
#include "commands/what_if.hpp"

#include "base/shared/text.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace monet::cli {

namespace {

void double_ports(Memory& memory) {
  for (MemoryPort& port : memory.ports) {
    port.bandwidth_min *= 2;
    port.bandwidth_max *= 2;
  }
}

bool is_offchip(const Link& link, const Chip& chip) {
  return chip.offchip && std::ranges::find(link.cores, *chip.offchip) != link.cores.end();
}

/// Doubles links to the off-chip memory, or those between cores. Returns whether the chip has any.
bool double_links(Chip& chip, bool offchip) {
  bool found = false;
  for (Link& link : chip.links) {
    if (is_offchip(link, chip) != offchip)
      continue;
    link.bandwidth_bits_per_cycle *= 2;
    found = true;
  }
  make_routes(chip);
  return found;
}

/// Doubles the ports of the off-chip memory and the links to it. A word that is twice as wide costs
/// twice as much per access, so that the energy per bit stays.
bool double_offchip(Experiment&, Chip& chip) {
  if (!chip.offchip)
    return false;
  for (Memory& memory : chip.cores[chip.offchip->index()].memories) {
    double_ports(memory);
    memory.read_energy_pj *= 2;
    memory.write_energy_pj *= 2;
  }
  double_links(chip, true);
  return true;
}

bool double_on_chip_links(Experiment&, Chip& chip) {
  return double_links(chip, false);
}

/// Doubles the largest memories of each compute core.
bool double_memories(Experiment&, Chip& chip) {
  for (std::size_t i = 0; i < chip.compute_cores(); ++i) {
    std::vector<Memory>& memories = chip.cores[i].memories;
    if (memories.empty())
      continue;
    const auto largest =
        std::ranges::max(memories, {}, [](const Memory& memory) { return memory.size.value; }).size;
    for (Memory& memory : memories)
      memory.size = memory.size == largest ? memory.size + largest : memory.size;
  }
  return true;
}

/// Doubles the first dimension of each array, with the loops that the dataflow unrolls over it.
bool double_arrays(Experiment&, Chip& chip) {
  for (std::size_t i = 0; i < chip.compute_cores(); ++i) {
    Core& core = chip.cores[i];
    if (core.array.empty())
      continue;
    const std::int64_t before = core.array.front().size;
    core.array.front().size *= 2;
    if (core.dataflow.empty())
      continue;
    for (Unrolling& unrolling : core.dataflow.front())
      unrolling.factor *= unrolling.factor == before ? 2 : 1;
  }
  return true;
}

bool double_batch(Experiment& experiment, Chip&) {
  if (!experiment.network_options.batch)
    return false;
  *experiment.network_options.batch *= 2;
  return true;
}

/// Stores weights, activations and gradients in bf16 if they have no other format yet.
bool use_bf16(Experiment& experiment, Chip&) {
  if (!experiment.training)
    return false;
  Precision& precision = experiment.training->precision;
  if (precision.weights || precision.activations || precision.gradients)
    return false;
  precision.weights = precision.activations = precision.gradients = ElementType::bf16;
  return true;
}

struct Change {
  const char* name;
  bool (*apply)(Experiment&, Chip&); ///< false: it does not apply
  std::int64_t steps = 1;
};
constexpr std::array kChanges{Change{"off-chip bandwidth x2", double_offchip},
                              Change{"links between cores x2", double_on_chip_links},
                              Change{"memories of the cores x2", double_memories},
                              Change{"arrays x2", double_arrays},
                              Change{"batch x2", double_batch, 2},
                              Change{"tensors in bf16", use_bf16}};

double per_step(double value, const WhatIf& change) {
  return value / static_cast<double>(change.steps);
}

} // namespace

std::vector<WhatIf> model_changes(const Experiment& experiment, const ModelInputs& inputs,
                                  Session& session) {
  std::vector<WhatIf> modelled;
  for (const Change& change : kChanges) {
    Experiment changed = experiment;
    Chip chip = inputs.chip;
    if (!change.apply(changed, chip))
      continue;
    WhatIf& row = modelled.emplace_back(WhatIf{.change = change.name, .steps = change.steps});
    session.progress.stage(fmt::format("what if: {}", change.name));
    try {
      const ModelInputs read = read_inputs(changed, &chip);
      row.figures = make_model(changed, read, session, false).step.modelled.figures;
    } catch (const InfeasibleError& error) {
      row.why_not = error.what();
    }
  }
  return modelled;
}

Json what_if_json(const std::vector<WhatIf>& changes) {
  Json json = Json::array();
  for (const WhatIf& change : changes) {
    json.push_back({{"change", change.change}, {"steps", change.steps}});
    if (!change.why_not.empty()) {
      json.back()["infeasible"] = valid_utf8(change.why_not);
      continue;
    }
    json.back()["latency_cycles"] = change.figures.latency_cycles;
    json.back()["energy_pj"] = change.figures.energy_pj;
    json.back()["peak_memory_bytes"] = change.figures.peak_memory_bytes;
  }
  return json;
}

std::string what_if_table(const std::vector<WhatIf>& changes, const StepFigures& present) {
  std::vector<std::vector<std::string>> table{
      {"what if", "latency (cycles)", "", "energy", "", "peak memory"}};
  const auto add = [&](const WhatIf& change) {
    const double cycles = per_step(static_cast<double>(change.figures.latency_cycles), change);
    const double energy = per_step(change.figures.energy_pj, change);
    table.push_back({change.change, group_digits(static_cast<std::int64_t>(cycles)),
                     fmt::format("x{:.3f}", cycles / static_cast<double>(present.latency_cycles)),
                     human_energy(energy), fmt::format("x{:.3f}", energy / present.energy_pj),
                     human_bytes(change.figures.peak_memory_bytes)});
  };
  add({.change = "as it is", .figures = present});
  for (const WhatIf& change : changes) {
    if (change.why_not.empty())
      add(change);
    else
      table.push_back({change.change, "infeasible", "", "", "", ""});
  }
  std::string text = aligned_table(table);
  if (std::ranges::any_of(changes, [](const WhatIf& change) { return change.steps > 1; }))
    text += "latency and energy of a larger batch are those of the present batch's samples\n";
  return text;
}

} // namespace monet::cli
