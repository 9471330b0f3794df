// Costs all networks on one machine with one set of choices (backward_sheets.hpp);
// backward_study.cpp derives the figures of a study.
#include "commands/backward_sheets.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/parallel.hpp"

#include "monet/base/stop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

namespace monet::cli {

namespace {

constexpr std::int64_t kMaxFraction = std::int64_t{1} << 20; // maximum of both bandwidth terms

/// Sets the bandwidth to `gb_per_s` for each core, as a fraction of bits per cycles. It is exact if
/// both terms are at most kMaxFraction, and rounded otherwise.
void set_bandwidth(double gb_per_s, NpuMachine& machine, const StudyMachine& of) {
  if (gb_per_s <= 0)
    return;
  if (machine.frequency_hz < 1)
    throw InputError({of.hardware}, "has no frequency_hz, which 'gb_per_s' of the study needs");
  const std::int64_t bits = saturated_integer(std::round(gb_per_s * 8e9)) * machine.cores;
  const auto hertz = saturated_integer(std::round(machine.frequency_hz));
  const std::int64_t common = std::gcd(bits, hertz);
  machine.bandwidth_bits = bits / common;
  machine.bandwidth_cycles = hertz / common;
  while (machine.bandwidth_bits > kMaxFraction || machine.bandwidth_cycles > kMaxFraction) {
    machine.bandwidth_bits /= 2;
    machine.bandwidth_cycles = std::max<std::int64_t>(1, machine.bandwidth_cycles / 2);
  }
}

/// Pairs of all networks in sequence, and the index at which each network begins.
struct AllPairs {
  GemmNetwork network;
  std::vector<std::size_t> begins;
};

AllPairs all_pairs(const Study& study, const StudySetting& setting) {
  AllPairs all;
  for (const StudyNetwork& network : study.networks) {
    all.begins.push_back(all.network.pairs.size());
    const GemmNetwork one = gemm_pairs(study.table(network, setting.machine, setting.choices),
                                       checked_multiply(setting.batch, setting.cores));
    for (const GemmPair& pair : one.pairs) {
      all.network.pairs.push_back(pair);
      all.network.pairs.back().name = network.name + " " + pair.name;
    }
  }
  all.begins.push_back(all.network.pairs.size());
  return all;
}

/// Cycles of `sequential` if dY passed the port once: the time for which transfers exceed
/// computation shrinks with the bytes.
std::int64_t with_dy_once(const PartitionedCost& cost, const GemmPair& pair,
                          const BackwardPlan& plan) {
  const std::int64_t once = pair.m * pair.n * pair.repeats * plan.options.element_bits;
  const std::int64_t saved = std::max<std::int64_t>(0, cost.traffic.dy_read - once);
  const double cycles = static_cast<double>(cost.traffic.bits() - saved) *
                        static_cast<double>(plan.machine.bandwidth_cycles) /
                        static_cast<double>(plan.machine.bandwidth_bits);
  const std::int64_t longer = std::max(cost.part.compute_cycles, cost.part.transfer_cycles);
  const std::int64_t exposed = cost.latency_cycles - longer; // at both ends, and in short steps
  return exposed + std::max(cost.part.compute_cycles, saturated_integer(std::ceil(cycles)));
}

/// Partition guess from the distinct layers that have both gradients.
NeighbourGuess guess_of(const AllPairs& all, const BackwardPlan& plan) {
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  std::vector<const GemmPair*> asked;
  for (const GemmPair& pair : all.network.pairs) {
    if (pair.has_dx && seen.emplace(pair.m, pair.k, pair.n).second)
      asked.push_back(&pair);
  }
  std::vector<PartitionSample> samples(asked.size());
  parallel_for(asked.size(), plan.jobs, [&](std::size_t i) {
    check_stop();
    samples[i] = partition_sample(*asked[i], plan.machine, Technique::best_of_three, plan.max_parts,
                                  plan.options);
  });
  return guess_partitions(samples);
}

std::string key_of(const StudySetting& setting) {
  const StudyChoices& choices = setting.choices;
  const std::string words = fmt::format(
      "{}",
      fmt::join(std::vector<std::string>{choices.tiles, choices.keep, choices.major, choices.timing,
                                         choices.im2col, choices.rule, choices.table_suffix},
                " "));
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", setting.machine, setting.cores,
                     setting.gb_per_s, setting.batch, setting.techniques.size(), words,
                     choices.element_bits, choices.partial_bits, choices.pipelined,
                     choices.wait_for_writes, choices.single_buffer);
}

/// Makes a sheet: the sums over the layers of each network.
class SheetMaker {
public:
  SheetMaker(const Study& study, const StudySetting& setting, int jobs)
      : study_(study), setting_(setting), all_(all_pairs(study, setting)) {
    const StudyMachine& machine = study.machines.at(setting.machine);
    plan_.machine = npu_machine(machine.chip, setting.cores);
    set_bandwidth(setting.gb_per_s, plan_.machine, machine);
    plan_.options = setting.choices.options(machine.chip, plan_.machine);
    plan_.jobs = jobs;
    for (std::size_t i = 0; i < study.networks.size(); ++i) {
      sheet_.networks.push_back(
          {.name = study.networks[i].name, .table = study.networks[i].tables.at(setting.machine)});
    }
  }

  StudySheet make(const std::function<void(std::int64_t, std::int64_t)>& tell) {
    add_forward();
    plan_.techniques = setting_.techniques;
    if (setting_.cores > 1)
      plan_.scheme = PartitionScheme::weight_sharing; // each core has separate samples
    add_techniques(map_backward(all_.network, plan_, tell));
    plan_.scheme = std::nullopt;
    plan_.techniques = {Technique::best_of_three};
    add_partitioned(map_backward(all_.network, plan_, tell));
    if (setting_.cores > 1)
      sheet_.guess = guess_of(all_, plan_);
    return std::move(sheet_);
  }

private:
  template <class Add>
  void each(Add add) {
    for (std::size_t n = 0; n < sheet_.networks.size(); ++n) {
      for (std::size_t i = all_.begins[n]; i < all_.begins[n + 1]; ++i)
        add(sheet_.networks[n], i);
    }
  }

  void add_forward() {
    std::vector<std::int64_t> cycles(all_.network.pairs.size());
    parallel_for(cycles.size(), plan_.jobs, [&](std::size_t i) {
      check_stop();
      cycles[i] = forward_cost(all_.network.pairs[i], plan_.machine, plan_.options).latency_cycles;
    });
    each([&](NetworkSheet& network, std::size_t i) { network.forward += cycles[i]; });
  }

  void add_techniques(const std::vector<BackwardLayer>& layers) {
    each([&](NetworkSheet& network, std::size_t i) {
      for (std::size_t t = 0; t < plan_.techniques.size(); ++t) {
        const PartitionedCost& cost = layers[i].costs[t];
        network.cycles[plan_.techniques[t]] += cost.latency_cycles;
        network.traffic[plan_.techniques[t]] += cost.traffic;
      }
      network.dy_once += with_dy_once(layers[i].costs[0], layers[i].pair, plan_);
      network.bound_cycles += layers[i].bound.latency_cycles;
      network.bound_bits += layers[i].bound.dram_bits;
    });
  }

  void add_partitioned(const std::vector<BackwardLayer>& layers) {
    each([&](NetworkSheet& network, std::size_t i) {
      network.partitioned += layers[i].costs[0].latency_cycles;
    });
  }

  const Study& study_;
  const StudySetting& setting_;
  AllPairs all_;
  BackwardPlan plan_;
  StudySheet sheet_;
};

} // namespace

StudySheet StudySheets::make(const StudySetting& setting,
                             const std::function<void(std::int64_t, std::int64_t)>& tell) const {
  try {
    return SheetMaker(study_, setting, jobs_).make(tell);
  } catch (const InfeasibleError& error) {
    return {.infeasible = error.what()};
  }
}

const StudySheet& StudySheets::sheet(const StudySetting& setting,
                                     const std::function<void(std::int64_t, std::int64_t)>& tell) {
  const std::string key = key_of(setting);
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  return known_.emplace(key, make(setting, tell)).first->second;
}

} // namespace monet::cli
