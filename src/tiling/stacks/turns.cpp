// Finds the operators of a step that can run image by image (in turns), and converts fusion plans
// for one turn to plans for the whole step.
#include "tiling/shared/turns.hpp"

#include "tiling/partition/split.hpp"
#include "tiling/stacks/slices.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

/// Minimum share of the work outside the update that must be able to run in turns.
constexpr double kEnough = 0.9;

/// True for inputs and labels, which the step reads but does not make.
bool is_fed(const Tensor& tensor) {
  return !tensor.producer && (tensor.kind == TensorKind::input || tensor.kind == TensorKind::label);
}

/// The leading loop of the first axis (the images) of an input or label that the nest reads;
/// nullopt if no such loop may be cut.
std::optional<std::uint32_t> loop_over_images(const Graph& graph, const LoopNest& nest) {
  for (const Access& access : nest.operands) {
    const Tensor& tensor = graph.tensor(access.tensor);
    if (access.mode != AccessMode::read || access.opaque || access.axes.empty() ||
        !is_fed(tensor) || tensor.shape.front() < 2)
      continue;
    if (const auto loop = leading_loop(access.axes.front(), nest);
        loop && loop_use(nest, *loop) != LoopUse::never)
      return loop;
  }
  return std::nullopt;
}

/// An operator that takes turns along one of its loops.
struct LoopInTurns {
  const LoopNest& nest;
  std::uint32_t loop = 0;

  /// Iterations that turn `turn` of `count` runs.
  std::vector<Interval> part(std::int64_t count, std::int64_t turn) const {
    std::vector<Interval> ranges = full_tile(nest);
    ranges[loop] = even_part(nest.dims[loop].size, count, turn);
    return ranges;
  }
};

/// True if the writer's turns up to t make everything that the reader's turn t reads. Checks the
/// first turn and the last but one.
bool in_step(const Graph& graph, const StackSlicer::Link& link, const LoopInTurns& writer,
             const LoopInTurns& reader, std::int64_t count) {
  const auto& shape = graph.tensor(link.read->tensor).shape;
  for (const std::int64_t turn : {std::int64_t{0}, count - 2}) {
    const Box needed = region(*link.read, reader.part(count, turn), shape);
    const Box later = region(*link.write, writer.part(count, turn + 1), shape);
    if (volume(intersect(needed, later)) > 0)
      return false;
  }
  return true;
}

/// Finds the loop over images of every operator that can take turns.
class TurnFinder {
public:
  explicit TurnFinder(const TrainingGraph& step)
      : graph_(step.graph), members_(all_operators(graph_)), scratch_(graph_),
        slicer_(graph_, members_, scratch_), loops_(members_.size()) {}

  std::optional<StepTurns> find() {
    for (std::size_t i = 0; i < members_.size(); ++i)
      loops_[i] = loop_over_images(graph_, nest(i));
    slicer_.spread(loops_);
    drop_odd_loops();
    if (most_ < 2)
      return std::nullopt;
    wait_for_sums();
    if (!enough())
      return std::nullopt;
    return StepTurns{most_, loops_};
  }

private:
  const LoopNest& nest(std::size_t op) const { return graph_.op(OpId(op)).nest; }

  /// Sets `most_` to the batch size, the common divisor of the first axes of inputs and labels.
  /// Drops loops that it does not divide.
  void drop_odd_loops() {
    for (const Tensor& tensor : graph_.tensors()) {
      if (is_fed(tensor) && !tensor.shape.empty() && tensor.shape.front() > 1)
        most_ = most_ == 1 ? tensor.shape.front() : std::gcd(most_, tensor.shape.front());
    }
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i] && nest(i).dims[*loops_[i]].size % most_ != 0)
        loops_[i].reset();
    }
  }

  /// Drops the loops of operators that must wait for all turns: readers of a sum over images or of
  /// all turns of a producer, updates (which may wait for all other operators), and their readers.
  void wait_for_sums() {
    std::vector<std::vector<const StackSlicer::Link*>> into(members_.size());
    for (const StackSlicer::Link& link : slicer_.links())
      into[link.consumer].push_back(&link);
    std::vector<bool> waits(members_.size(), false);
    for (std::size_t i = 0; i < members_.size(); ++i) { // in topological order
      waits[i] = graph_.op(OpId(i)).phase == Phase::update;
      for (const StackSlicer::Link* link : into[i]) {
        const std::uint32_t maker = link->producer;
        const bool has_turns = loops_[maker].has_value();
        const bool late =
            has_turns &&
            (!loops_[i] || loop_use(nest(maker), *loops_[maker]) == LoopUse::summed ||
             !in_step(graph_, *link, {nest(maker), *loops_[maker]}, {nest(i), *loops_[i]}, most_));
        waits[i] = waits[i] || waits[maker] || late;
      }
      if (waits[i])
        loops_[i].reset();
    }
  }

  bool enough() const {
    double all = 0;
    double in_turns = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (graph_.op(OpId(i)).phase == Phase::update)
        continue;
      const auto work = static_cast<double>(body_count(nest(i)));
      all += work;
      in_turns += loops_[i] ? work : 0.0;
    }
    return in_turns > 0 && in_turns >= kEnough * all;
  }

  const Graph& graph_;
  std::vector<OpId> members_;
  StackSlicer::Scratch scratch_;
  StackSlicer slicer_;
  StackSlicer::Loops loops_;
  std::int64_t most_ = 1;
};

/// Cuts that divide each member of a stack that takes turns into one or more slices per turn.
class TurnCuts {
public:
  /// Each stack has `count` turns of the plan, which may itself have `within` turns.
  TurnCuts(const TrainingGraph& step, const StepTurns& turns, std::int64_t count,
           std::int64_t within)
      : graph_(step.graph), turns_(turns), count_(count), within_(within), scratch_(step.graph) {}

  StackSlices of(const std::vector<OpId>& members, const StackSlices& planned) {
    StackSlices slices{{}, planned.halo, count_ * within_};
    std::int64_t within = within_; // slices of one turn along the same loop
    std::vector<StackSlices::Cut> others;
    for (const StackSlices::Cut& cut : planned.cuts) {
      if (turns_.loops[cut.op.index()] == cut.dim)
        within = std::max(within, cut.count);
      else if (std::ranges::binary_search(members, cut.op) && may_be_cut(cut))
        others.push_back(cut);
    }
    const StackSlicer slicer(graph_, members, scratch_);
    StackSlicer::Loops reached(members.size());
    for (std::size_t m = members.size(); m-- > 0;) { // consumers first: producers follow
      const auto& own = turns_.loops[members[m].index()];
      if (!own || reached[m])
        continue;
      const std::int64_t size = graph_.op(members[m]).nest.dims[*own].size;
      slices.cuts.push_back({members[m], *own, std::min(size, count_ * within)});
      reached[m] = own;
      slicer.spread(reached);
    }
    slices.cuts.insert(slices.cuts.end(), others.begin(), others.end());
    return slices;
  }

private:
  /// True if the loop may be cut in the whole step. Parts that are disjoint in one turn may
  /// interleave over all images, such as rows of which every image has some.
  bool may_be_cut(const StackSlices::Cut& cut) const {
    return loop_use(graph_.op(cut.op).nest, cut.dim) != LoopUse::never;
  }

  const Graph& graph_;
  const StepTurns& turns_;
  std::int64_t count_;
  std::int64_t within_;
  StackSlicer::Scratch scratch_;
};

} // namespace

std::optional<StepTurns> find_turns(const TrainingGraph& step) {
  if (step.passes > 1)
    return std::nullopt;
  return TurnFinder(step).find();
}

TrainingGraph one_turn(const TrainingGraph& step, const StepTurns& turns, std::int64_t count) {
  internal_check(count > 0 && turns.most % count == 0, "turns are of equal size");
  TrainingGraph one = step;
  std::vector<bool> shorter(step.graph.tensors().size(), false);
  for (std::size_t i = 0; i < turns.loops.size(); ++i) {
    const auto& loop = turns.loops[i];
    if (!loop)
      continue;
    const LoopNest& nest = step.graph.op(OpId(i)).nest;
    one.graph.op(OpId(i)).nest.dims[*loop].size /= count;
    for (const Access& access : nest.operands) {
      Tensor& tensor = one.graph.tensor(access.tensor);
      if (shorter[access.tensor.index()] || !(access.mode != AccessMode::read || is_fed(tensor)))
        continue;
      for (std::size_t a = 0; a < access.axes.size() && !access.opaque; ++a) {
        if (leading_loop(access.axes[a], nest) != loop || tensor.shape[a] % count != 0)
          continue;
        tensor.shape[a] /= count;
        shorter[access.tensor.index()] = true;
        break;
      }
    }
  }
  return one;
}

FusionPlan in_turns(const FusionPlan& plan, const TrainingGraph& step, const StepTurns& turns,
                    std::int64_t count) {
  std::int64_t within = 1;
  for (const auto& slices : plan.slices)
    within = std::max(within, slices ? slices->turns : 1);
  if (within > StackSlices::kMaxTurns / count)
    throw InfeasibleError(fmt::format("a step has at most {} turns", StackSlices::kMaxTurns));
  TurnCuts cuts(step, turns, count, within);
  FusionPlan whole;
  std::vector<bool> planned(turns.loops.size(), false);
  const auto takes_turns = [&](OpId op) { return turns.loops[op.index()].has_value(); };
  for (std::size_t s = 0; s < plan.stacks.size(); ++s) {
    std::vector<OpId> members;
    for (const OpId member : plan.stacks[s]) {
      if (takes_turns(member) || step.graph.op(member).phase == Phase::update)
        members.push_back(member);
    }
    if (std::ranges::none_of(members, takes_turns))
      continue;
    for (const OpId member : members)
      planned[member.index()] = true;
    const auto& slices = plan.slices.at(s);
    whole.slices.emplace_back(cuts.of(members, slices.value_or(StackSlices{})));
    whole.stacks.push_back(std::move(members));
  }
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (planned[i] || !takes_turns(OpId(i)))
      continue;
    whole.stacks.push_back({OpId(i)});
    whole.slices.emplace_back(cuts.of(whole.stacks.back(), {}));
  }
  return whole;
}

} // namespace monet
