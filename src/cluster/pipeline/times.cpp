// Computes the times of a pipeline step fast: evaluates the compiled schedule from front to back,
// with fewer micro-batches if the rest provably repeats. Equal to the times of simulate.cpp.
#include "cluster/pipeline/problem.hpp"

#include "monet/cluster/pipeline.hpp"

#include <algorithm>
#include <map>

namespace monet {

namespace {

/// The end of a pass, and the arrival of its send.
struct PassEnd {
  Nanoseconds end = 0, arrival = 0;
};

} // namespace

struct PipelineScratch::State {
  struct Entry {
    CompiledPipeline pipeline;
    bool with_places = false;
  };
  std::map<PipelineShape, Entry> known;
  std::size_t passes_known = 0;
  std::vector<Nanoseconds> durations, sends; ///< by CompiledPass::kind
  std::vector<Nanoseconds> slots, links;
  std::vector<Nanoseconds> begin, end, finish; ///< by stage
  std::vector<PassEnd> ends;

  const CompiledPipeline& compiled(const PipelineShape& shape, bool with_places) {
    constexpr std::size_t kMaxCachedTimes = std::size_t{1} << 21; // 32 MB
    auto found = known.find(shape);
    if (found != known.end() && (found->second.with_places || !with_places))
      return found->second.pipeline;
    if (passes_known > kMaxCachedTimes) {
      known.clear();
      passes_known = 0;
    }
    Entry& entry = known[shape];
    entry = {compile_pipeline(shape, with_places), with_places};
    passes_known += entry.pipeline.passes.size() * (with_places ? 2 : 1);
    return entry.pipeline;
  }
};

PipelineScratch::PipelineScratch() : state_(std::make_unique<State>()) {}
PipelineScratch::~PipelineScratch() = default;
PipelineScratch::PipelineScratch(PipelineScratch&&) noexcept = default;
PipelineScratch& PipelineScratch::operator=(PipelineScratch&&) noexcept = default;

namespace {

using ScratchState = PipelineScratch::State;

/// Sets the durations and sends of each kind of pass. Returns whether any send takes time.
bool list_costs(const PipelineProblem& problem, ScratchState& s) {
  const bool split = splits_backward(problem.kind);
  const auto kinds = static_cast<std::size_t>(3 * problem.stages * problem.chunks);
  s.durations.resize(kinds);
  s.sends.assign(kinds, 0);
  const std::int64_t last = problem.stages * problem.chunks - 1;
  bool any = false;
  std::size_t at = 0;
  for (std::int64_t i = 0; i < problem.stages; ++i) {
    for (std::int64_t c = 0; c < problem.chunks; ++c, at += 3) {
      const ChunkCost& cost = cost_of(problem, i, c);
      const std::int64_t part = part_of(problem.kind, problem.stages, i, c);
      s.durations[at] = cost.forward;
      s.durations[at + 1] = backward_time(cost) + (split ? 0 : cost.backward_weight);
      s.durations[at + 2] = cost.backward_weight;
      if (part < last)
        s.sends[at] = send_between(problem, part, false);
      if (part > 0)
        s.sends[at + 1] = send_between(problem, part - 1, true);
      any = any || s.sends[at] > 0 || s.sends[at + 1] > 0;
    }
  }
  return any;
}

/// Computes the end of every pass. If `Linked`, sends run on links in parallel with passes, else
/// the sending stage waits for them. `Recorded` keeps the end of each pass.
template <bool Linked, bool Recorded>
void evaluate_passes(const CompiledPipeline& pipeline, ScratchState& s) {
  const Nanoseconds* durations = s.durations.data();
  const Nanoseconds* sends = s.sends.data();
  Nanoseconds* slots = s.slots.data();
  Nanoseconds* links = s.links.data();
  Nanoseconds* free = s.end.data();
  std::size_t n = 0;
  for (const CompiledPass& pass : pipeline.passes) {
    Nanoseconds end = std::max(free[pass.stage], slots[pass.input]) + durations[pass.kind];
    Nanoseconds arrival = end + sends[pass.kind];
    if constexpr (Linked) {
      arrival = std::max(end, links[pass.link]) + sends[pass.kind];
      links[pass.link] = arrival;
      links[CompiledPipeline::kNoLink] = 0;
    } else {
      end = arrival;
    }
    free[pass.stage] = end;
    slots[pass.output] = arrival;
    if constexpr (Recorded)
      s.ends[n++] = {end, arrival};
  }
}

void evaluate_pipeline(const CompiledPipeline& pipeline, bool linked, bool recorded,
                       ScratchState& s) {
  s.slots.assign(pipeline.slots, 0);
  std::ranges::fill(s.links, 0);
  std::ranges::fill(s.end, 0);
  if (recorded)
    s.ends.resize(pipeline.passes.size());
  if (linked)
    recorded ? evaluate_passes<true, true>(pipeline, s) : evaluate_passes<true, false>(pipeline, s);
  else
    recorded ? evaluate_passes<false, true>(pipeline, s)
             : evaluate_passes<false, false>(pipeline, s);
}

/// The delay between each of the last 2 reach + 1 rounds that all stages have and the round `lag`
/// before it. Nullopt unless it is equal for every pass and arrival.
std::optional<Nanoseconds> shift_of_rounds(const PipelineShape& shape, std::int64_t lag,
                                           const CompiledPipeline& pipeline,
                                           const ScratchState& s) {
  const PipelineRounds rounds = rounds_of(shape);
  const std::int64_t last = rounds.first + rounds.count - 1;
  std::optional<Nanoseconds> shift;
  for (std::int64_t i = 0; i < shape.stages; ++i) {
    const auto& places = pipeline.places[static_cast<std::size_t>(i)];
    for (std::int64_t r = last; r > last - (2 * rounds.reach + 1); --r) {
      const RoundPlace later = round_place(shape, i, r), earlier = round_place(shape, i, r - lag);
      for (std::int64_t n = 0; n < later.passes; ++n) {
        const PassEnd& a = s.ends[places[static_cast<std::size_t>(earlier.first + n)]];
        const PassEnd& b = s.ends[places[static_cast<std::size_t>(later.first + n)]];
        if (!shift)
          shift = b.end - a.end;
        if (b.end - a.end != *shift || b.arrival - a.arrival != *shift)
          return std::nullopt;
      }
    }
  }
  return shift;
}

/// Computes the stages' ends from a shorter run whose last rounds only shift, and stores them in
/// the scratch. Returns false if there is no such run. Proof: let x be the times of the short run.
/// Its last 2 reach + 1 common rounds equal the rounds `lag` before them, shifted by s; let c be
/// the middle one. Repeat `lag` rounds after c: keep x up to c, and shift all later times by s. Up
/// to c, every pass waits for the same times as in x; after c, for the times in x plus s. These are
/// therefore the times of the longer run, whose last rounds shift in the same way.
bool evaluate_short(const PipelineProblem& problem, bool linked, ScratchState& s) {
  PipelineShape shape{problem.kind, problem.stages, problem.chunks, problem.micro_batches};
  const PipelineRounds all = rounds_of(shape);
  // First assume that every round equals the previous one, shifted. If sends make all stages wait
  // for a micro-batch that goes down and back up, rounds repeat with a lag of the number of stages.
  const std::int64_t turns = all.step == 1 ? problem.stages : 1;
  std::int64_t rounds = 2 * all.reach + 2 + 6 / all.step;
  for (std::int64_t lag = 1; all.count > 0; lag = turns, rounds = 2 * rounds + turns) {
    const std::int64_t left_out = (all.count - rounds) / lag * lag;
    shape.micro_batches = problem.micro_batches - left_out * all.step;
    if (left_out <= 0 || 2 * shape.micro_batches > problem.micro_batches)
      return false;
    const CompiledPipeline& pipeline = s.compiled(shape, true);
    evaluate_pipeline(pipeline, linked, true, s);
    if (const auto shift = shift_of_rounds(shape, lag, pipeline, s)) {
      for (Nanoseconds& end : s.end)
        end += left_out / lag * *shift;
      return true;
    }
  }
  return false;
}

/// Sets the begin of every stage, whose first pass is the first micro-batch through its first part.
void list_begins(const PipelineProblem& problem, ScratchState& s) {
  s.begin[0] = 0;
  for (std::size_t i = 1; i < s.begin.size(); ++i) {
    const std::size_t before = 3 * (i - 1) * static_cast<std::size_t>(problem.chunks);
    s.begin[i] = s.begin[i - 1] + s.durations[before] + s.sends[before];
  }
}

} // namespace

PipelineTimes pipeline_times(const PipelineProblem& problem, PipelineScratch& scratch) {
  check_pipeline_problem(problem);
  ScratchState& s = scratch.state();
  const auto stages = static_cast<std::size_t>(problem.stages);
  const bool sends = list_costs(problem, s);
  const bool linked = sends && problem.overlap_sends;
  for (auto* list : {&s.begin, &s.end, &s.finish})
    list->resize(stages);
  s.links.resize(1 + 2 * stages);
  if (!evaluate_short(problem, linked, s)) {
    const PipelineShape shape{problem.kind, problem.stages, problem.chunks, problem.micro_batches};
    evaluate_pipeline(s.compiled(shape, false), linked, false, s);
  }
  list_begins(problem, s);
  return finish_step(problem, s.begin, s.end, s.finish);
}

Nanoseconds makespan(const PipelineProblem& problem) {
  PipelineScratch scratch;
  return pipeline_times(problem, scratch).makespan;
}

} // namespace monet
