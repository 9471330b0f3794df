// Lower bounds on a step's latency, energy, off-chip traffic and memory for any tiling and
// schedule; certificates of the searches use them.
#include "optimise/shared/step_bounds.hpp"

#include "optimise/bounds/core_work.hpp"
#include "optimise/bounds/offchip_time.hpp"
#include "optimise/bounds/read_again.hpp"
#include "optimise/bounds/step_cone.hpp"

#include "monet/base/stop.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace monet {

namespace {

constexpr std::size_t kWindow = 12; ///< maximum distance of separators that a path connects
constexpr std::size_t kMaxConeBoxes =
    400'000;                        ///< maximum boxes of operators in the cones of separators
constexpr std::size_t kBlocks = 32; ///< maximum separators at which windows begin and end

/// A moment in every schedule: the middle element of `op` is made.
struct Separator {
  OpId op;
  StepCone before, after;
  double dirty = 0;          ///< bits made once, before it, and read after it
  double clean = 0;          ///< bits of tensors without producer, read before and after it
  double sources_before = 0; ///< bits of tensors without producer, read before it
  double sources_after = 0;
  double again = 0;                ///< bits read twice after it, see ReadAgain
  double left_after = 0;           ///< bits written after it since they outlive the step
  std::vector<double> read_before; ///< bits per tensor without producer
  std::vector<double> read_after;
  std::vector<std::vector<Interval>> live; ///< per tensor, elements made before and read after it
  double begin = 0;                        ///< minimum cycles of work before it
  double end = 0;                          ///< minimum cycles of work after it
};

class StepBounder {
public:
  StepBounder(const TrainingGraph& step, const Chip& chip, const StepBoundOptions& options)
      : graph_(step.graph), options_(options), table_(work_table(step, chip, options)),
        work_(table_), offchip_(chip), room_(onchip_bits(chip)),
        traffic_(compulsory_traffic(graph_)),
        again_(graph_, room_ = std::max(room_, static_cast<double>(options.onchip.value))) {
    for (std::size_t c = 0; c < chip.cores.size(); ++c)
      leakage_ += leakage_per_cycle(chip, CoreId(c));
  }

  StepBounds find() {
    for (std::size_t i = 0; i < traffic_.read.size(); ++i) {
      bounds_.compulsory_read.value += traffic_.read[i];
      bounds_.compulsory_written.value += traffic_.written[i];
    }
    bounds_.work = work_.all();
    while_there_is_time([&] { place_separators(); });
    spill();
    while_there_is_time([&] {
      follow_windows();
      follow_paths();
    });
    split_phases();
    const auto read = static_cast<double>(bounds_.offchip_read().value);
    const auto written = static_cast<double>(bounds_.offchip_written().value);
    bounds_.offchip = offchip_.cycles(read, written);
    bounds_.links_pj = offchip_.links_pj(read, written);
    bounds_.offchip_pj = offchip_.ports_pj(read, written);
    add_core_energy();
    bounds_.leakage_pj = leakage_ * static_cast<double>(bounds_.latency().value);
    return bounds_;
  }

private:
  /// Runs a part of the bounds. A stop request ends it with weaker, valid bounds.
  template <class Look>
  static void while_there_is_time(Look look) {
    try {
      look();
    } catch (const Stopped&) {
      return;
    }
  }

  /// Adds each operator's minimum energy over its cores: certain for any tile size, or less the
  /// rounding loss of tiles.
  void add_core_energy() {
    double compute = 0, any = 0, tiled = 0, lost = 0;
    for (const auto& row : table_.work) {
      constexpr double kUnable = std::numeric_limits<double>::infinity();
      double least = kUnable, min_tiled = kUnable, min_compute = kUnable;
      for (const CoreWork& work : row) {
        if (!work.able)
          continue;
        least = std::min(least, work.compute_pj + work.memory_pj);
        min_tiled = std::min(min_tiled, work.compute_pj + work.tiled_pj);
        min_compute = std::min(min_compute, work.compute_pj);
        lost = std::max(lost, work.lost_pj);
      }
      any += least;
      tiled += min_tiled;
      compute += min_compute;
    }
    bounds_.compute_pj = compute;
    const double rounded = lost > 0 ? lost * options_.max_tiles : 0;
    bounds_.memory_pj = std::max(any, tiled - rounded) - compute;
  }

  void place_separators() {
    const std::size_t count = graph_.operators().size();
    const std::size_t most =
        std::clamp(kMaxConeBoxes / std::max<std::size_t>(1, count), std::size_t{1},
                   std::max<std::size_t>(1, options_.separators));
    std::size_t last = count;
    for (std::size_t k = 0; k < std::min(most, count); ++k) {
      const std::size_t o = count <= most ? k : k * count / most;
      if (o == last)
        continue;
      last = o;
      check_stop();
      Separator at{OpId(o), needed_by(graph_, OpId(o)), depending_on(graph_, OpId(o))};
      measure(at);
      const std::int64_t live = min_live(graph_, at.op, at.before, at.after, options_.kept);
      bounds_.peak_memory_bytes = std::max(bounds_.peak_memory_bytes, live);
      separators_.push_back(std::move(at));
    }
  }

  double bits(std::size_t tensor) const {
    return static_cast<double>(bits_of(graph_.tensors()[tensor].type));
  }

  void measure(Separator& at) const {
    const std::size_t tensors = graph_.tensors().size();
    std::vector<std::vector<Interval>> read_before(tensors);
    at.live.resize(tensors);
    at.read_before.resize(tensors);
    at.read_after.resize(tensors);
    for (std::size_t o = 0; o <= at.op.index(); ++o)
      for (const Access& access : graph_.operators()[o].nest.operands) {
        const std::size_t t = access.tensor.index();
        if (access.mode != AccessMode::read || graph_.tensors()[t].producer)
          continue;
        std::vector<Interval> box = certain_reads(graph_, at.before, OpId(o), access);
        if (certain_volume(box) > certain_volume(read_before[t]))
          read_before[t] = std::move(box);
      }
    for (std::size_t o = at.op.index() + 1; o < graph_.operators().size(); ++o)
      for (const Access& access : graph_.operators()[o].nest.operands) {
        const std::size_t t = access.tensor.index();
        if (access.mode != AccessMode::read)
          continue;
        const std::vector<Interval> box = certain_reads(graph_, at.after, OpId(o), access);
        const bool made = graph_.tensors()[t].producer.has_value();
        auto both = common(box, made ? at.before.elements[t] : read_before[t]);
        if (certain_volume(both) > certain_volume(at.live[t]))
          at.live[t] = std::move(both);
        if (!made)
          at.read_after[t] = std::max(at.read_after[t], certain_volume(box) * bits(t));
      }
    for (std::size_t t = 0; t < tensors; ++t) {
      const bool made = graph_.tensors()[t].producer.has_value();
      const double live = certain_volume(at.live[t]) * bits(t);
      if (made)
        at.dirty += options_.made_once ? live : 0;
      else
        at.clean += live;
      at.read_before[t] = certain_volume(read_before[t]) * bits(t);
      at.sources_before += at.read_before[t];
      at.sources_after += at.read_after[t];
      if (traffic_.written[t] > 0)
        at.left_after += certain_volume(at.after.elements[t]) * bits(t);
    }
    std::vector<double> first(table_.iterations.size()), last(table_.iterations.size());
    for (std::size_t o = 0; o < first.size(); ++o) {
      first[o] = std::max(0.0, at.before.iterations[o] - table_.padding[o]);
      last[o] = std::max(0.0, at.after.iterations[o] - table_.padding[o]);
    }
    at.again = again_.bits(&at.after);
    at.begin = work_.of(first);
    at.end = work_.of(last);
  }

  /// Bounds spilling: live data at a separator beyond the chip's capacity must be read again.
  void spill() {
    bounds_.spilled_read.value = static_cast<std::int64_t>(again_.bits(nullptr));
    for (const Separator& at : separators_) {
      const double read = at.dirty + at.clean - room_ + at.again;
      const double written = spilled(at);
      if (read + written <=
          static_cast<double>((bounds_.spilled_read + bounds_.spilled_written).value))
        continue;
      bounds_.spilled_read.value = static_cast<std::int64_t>(std::max(0.0, read));
      bounds_.spilled_written.value = static_cast<std::int64_t>(written);
      bounds_.separator = at.op;
    }
  }

  /// Selects the separator with the most live data of each group of neighbours; windows lie between
  /// selected ones.
  void choose() {
    const std::size_t n = separators_.size();
    const std::size_t blocks = std::min(kBlocks, n);
    for (std::size_t b = 0; b < blocks; ++b) {
      std::size_t best = b * n / blocks;
      for (std::size_t i = best; i < (b + 1) * n / blocks; ++i)
        if (alive(separators_[i]) > alive(separators_[best]))
          best = i;
      chosen_.push_back(best);
    }
  }

  double alive(const Separator& at) const { return at.dirty + at.clean + 1e-3 * at.sources_after; }

  /// Bits per tensor that exist before `from` and are certainly read between the two separators.
  std::vector<double> read_between(const Separator& from, const Separator& to) const {
    std::vector<double> read(graph_.tensors().size(), 0);
    for (std::size_t o = from.op.index() + 1; o <= to.op.index(); ++o)
      for (const Access& access : graph_.operators()[o].nest.operands) {
        const std::size_t t = access.tensor.index();
        const bool made = graph_.tensors()[t].producer.has_value();
        if (access.mode != AccessMode::read || (made && !options_.made_once))
          continue;
        auto box = certain_reads(graph_, from.after, to.before, OpId(o), access);
        if (made)
          box = common(box, from.before.elements[t]);
        read[t] = std::max(read[t], certain_volume(box) * bits(t));
      }
    return read;
  }

  /// Bits made after `from` and live at `to`, without tensors that are written off-chip in any
  /// case.
  double made_between(const Separator& from, const Separator& to) const {
    double sum = 0;
    for (std::size_t t = 0; t < traffic_.written.size(); ++t)
      if (traffic_.written[t] == 0 && !to.live[t].empty())
        sum += certain_volume(common(to.live[t], from.after.elements[t])) * bits(t);
    return sum;
  }

  /// Bounds traffic in windows between dependent separators. Data that exists before a window and
  /// is read in it comes in, and data made in it and needed later goes out, except what fits in the
  /// memories. The traffic of consecutive windows adds up.
  void follow_windows() {
    choose();
    const std::size_t n = chosen_.size();
    const auto at = [&](std::size_t i) -> const Separator& { return separators_[chosen_[i]]; };
    std::vector<double> reads(n), writes(n);
    std::vector<std::vector<double>> counted(n); // per tensor, maximum bits in one window
    double max_read = 0;
    double max_written = 0;
    for (std::size_t j = 0; j < n; ++j) {
      reads[j] = at(j).sources_before;
      counted[j] = at(j).read_before;
      writes[j] = spilled(at(j));
      for (std::size_t i = 0; i < j; ++i) {
        check_stop();
        if (!passes(at(i), at(j)))
          continue;
        const std::vector<double> read = read_between(at(i), at(j));
        const double sum = std::accumulate(read.begin(), read.end(), 0.0);
        if (const double here = reads[i] + std::max(0.0, sum - room_); here > reads[j]) {
          reads[j] = here;
          counted[j] = larger(counted[i], read);
        }
        if (options_.made_once)
          writes[j] =
              std::max(writes[j], writes[i] + std::max(0.0, made_between(at(i), at(j)) - room_));
      }
      double total =
          reads[j] + std::max(0.0, at(j).sources_after + at(j).dirty - room_) + at(j).again;
      // Elements of tensors without producer that no window has counted.
      const std::vector<double> known = larger(counted[j], at(j).read_after);
      for (std::size_t t = 0; t < known.size(); ++t)
        if (!graph_.tensors()[t].producer)
          total += std::max(0.0, static_cast<double>(traffic_.read[t]) - known[t]);
      max_read = std::max(max_read, total);
      max_written = std::max(max_written, writes[j]);
    }
    const auto compulsory = static_cast<double>(bounds_.compulsory_read.value);
    bounds_.spilled_read.value = std::max(
        bounds_.spilled_read.value, static_cast<std::int64_t>(std::floor(max_read - compulsory)));
    bounds_.spilled_written.value =
        std::max(bounds_.spilled_written.value, static_cast<std::int64_t>(std::floor(max_written)));
  }

  static std::vector<double> larger(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = std::max(a[i], b[i]);
    return a;
  }

  /// Bits of at.dirty beyond the chip's capacity, without those that are written off-chip in any
  /// case.
  double spilled(const Separator& at) const {
    double outputs = 0;
    for (std::size_t t = 0; t < traffic_.written.size(); ++t)
      if (traffic_.written[t] > 0)
        outputs += certain_volume(at.before.elements[t]) * bits(t);
    return std::max(0.0, at.dirty - outputs - room_);
  }

  /// Minimum work between two separators, including the work that both cones leave between them.
  double between(const Separator& from, const Separator& to) const {
    std::vector<double> iterations(table_.iterations.size(), 0);
    for (std::size_t o = from.op.index() + 1; o <= to.op.index(); ++o) {
      const auto both = common(from.after.loops[o], to.before.loops[o]);
      if (both.empty())
        continue;
      const double outside_from = certain_volume(from.after.loops[o]) - from.after.iterations[o];
      const double outside_to = certain_volume(to.before.loops[o]) - to.before.iterations[o];
      iterations[o] =
          std::max(0.0, certain_volume(both) - outside_from - outside_to - table_.padding[o]);
    }
    return work_.of(iterations);
  }

  /// Bounds latency by the longest chain of intervals between dependent separators.
  void follow_paths() {
    const std::size_t n = separators_.size();
    std::vector<std::vector<double>> cycles(n, std::vector<double>(kWindow + 1, -1));
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t back = 1; back <= std::min(kWindow, j); ++back) {
        const Separator& from = separators_[j - back];
        if (separators_[j].before.loops[from.op.index()].empty() ||
            from.after.loops[separators_[j].op.index()].empty() || !passes(from, separators_[j]))
          continue;
        check_stop();
        cycles[j][back] = between(from, separators_[j]);
        separators_[j].begin = std::max(separators_[j].begin, from.begin + cycles[j][back]);
      }
    }
    for (std::size_t i = n; i-- > 0;)
      for (std::size_t ahead = 1; ahead <= kWindow && i + ahead < n; ++ahead)
        if (cycles[i + ahead][ahead] >= 0)
          separators_[i].end =
              std::max(separators_[i].end, separators_[i + ahead].end + cycles[i + ahead][ahead]);
    for (const Separator& at : separators_)
      bounds_.path = std::max(bounds_.path, at.begin + at.end);
  }

  /// Whether the later separator's element certainly needs the earlier one's.
  bool passes(const Separator& from, const Separator& to) const {
    const auto made = graph_.op(from.op).nest.operands.front().tensor.index();
    return !common(from.after.elements[made], to.before.elements[made]).empty();
  }

  void split_phases() {
    for (const Separator& at : separators_) {
      const double first = offchip_.cycles(at.sources_before, spilled(at));
      const double last = offchip_.cycles(
          std::max(0.0, at.sources_after + at.dirty - room_) + at.again, at.left_after);
      bounds_.phases = std::max(bounds_.phases, std::max(at.begin, first) + std::max(at.end, last));
    }
  }

  const Graph& graph_;
  const StepBoundOptions& options_;
  WorkTable table_;
  WorkBound work_;
  OffchipTime offchip_;
  double room_;        ///< capacity in bits
  double leakage_ = 0; ///< leakage in pJ per cycle
  CompulsoryTraffic traffic_;
  ReadAgain again_;
  std::vector<Separator> separators_;
  std::vector<std::size_t> chosen_; ///< indices of separators_
  StepBounds bounds_;
};

} // namespace

Cycles StepBounds::latency() const {
  // Rounds up to whole cycles after subtracting possible rounding errors of sums.
  return {static_cast<std::int64_t>(
      std::ceil(std::max({work, path, offchip, phases}) * (1 - 1e-9) - 1e-6))};
}

double StepBounds::least(Objective objective) const {
  constexpr double kLedger = 1 - 1e-6; // margin: runs and transfers are rounded to 1/64 pJ
  StepFigures least;
  least.latency_cycles = latency().value;
  least.energy_pj = energy_pj() * kLedger;
  least.offchip_bits = (offchip_read() + offchip_written()).value;
  return least.value(objective);
}

double onchip_bits(const Chip& chip) {
  double sum = 0;
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    if (chip.memory_of(CoreId(c)) != CoreId(c) || (chip.offchip && chip.offchip->index() == c))
      continue;
    sum += static_cast<double>(chip.pool_bits(CoreId(c)));
  }
  return sum;
}

StepBounds step_bounds(const TrainingGraph& step, const Chip& chip,
                       const StepBoundOptions& options) {
  return StepBounder(step, chip, options).find();
}

} // namespace monet
