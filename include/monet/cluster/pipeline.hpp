// Pipeline schedules: the order in which every stage runs its forward passes, input gradients and
// weight gradients, and what a step then takes. The orders are lists, which
// are priced here. Times are whole nanoseconds and exact.
//
// A model is cut into `stages * chunks` parts in the order of the data. Part k's forward pass of a
// micro-batch needs that of part k - 1, its backward pass that of part k + 1, its weight gradient
// its own backward pass. Where parts are on different stages, a send lies between.
#pragma once

#include "monet/cluster/duration.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// p stages, v chunks a stage, m micro-batches; F, B, W: forward, input gradient, weight gradient
/// of a whole stage. Bubbles are those of equal stages without sends.
enum class PipelineKind : std::uint8_t {
  /// All forward passes, then all backward passes (Huang et al. 2019). Bubble (p-1)(F+B+W). With
  /// more chunks it is breadth-first (Lamy-Poirier 2022): the bubble / v from m = p on.
  gpipe,
  /// One forward, one backward (Narayanan et al. 2019, 2021; PipeDream-Flush): GPipe's bubble, at
  /// most p micro-batches held.
  one_f_one_b,
  /// 1F1B over v chunks a stage as Megatron-LM orders them (Narayanan et al. 2021): the bubble / v,
  /// v times the sends. Needs m to be a multiple of p.
  interleaved,
  /// Zero bubble, memory of 1F1B (Qi et al. 2023, "Zero Bubble Pipeline Parallelism"): weight
  /// gradients of stage i wait for i micro-batches. Bubble (p-1)(F+B-W).
  zero_bubble_h1,
  /// The same with up to 2p - 1 micro-batches held. Bubble (p-1)(F+B-2W) where that is not
  /// negative, from m = 2p - 1 on.
  zero_bubble_h2,
  /// Two chunks a stage, on the way down and back up (Qi et al. 2024, "Pipeline Parallelism with
  /// Controllable Memory"), in the order of PyTorch's ScheduleZBVZeroBubble. No bubble for
  /// F = B = W; every stage holds what stage 0 of 1F1B does.
  zero_bubble_v,
};

/// As files name it: "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v".
std::string_view name_of(PipelineKind kind);
/// All of them, in the order of the enumeration.
std::span<const std::string_view> pipeline_kind_names();
/// Whether weight gradients wait: the gradient of a part's input leaves before they are made.
/// Elsewhere a backward pass is one, and it leaves at the end.
bool splits_backward(PipelineKind kind);

/// Why there is no such schedule, in words for the user ("needs a number of micro-batches that is a
/// multiple of the 4 stages, and 6 is not"); nothing where there is one. More than 2^14 stages, or
/// 2^22 pairs of part and micro-batch, are refused.
std::optional<std::string> why_not(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                                   std::int64_t micro_batches);

enum class PipelinePass : std::uint8_t {
  forward,
  backward, ///< of the input: dX
  weight,   ///< dW
};

struct PipelineTask {
  PipelinePass pass = PipelinePass::forward;
  std::int64_t micro_batch = 0;
  std::int64_t chunk = 0; ///< of the stage
  friend auto operator<=>(const PipelineTask&, const PipelineTask&) = default;
};
/// "F3" (micro-batch 3), or "F3.1" for chunk 1 where there are more.
std::string to_string(const PipelineTask& task, std::int64_t chunks);

/// Which part of the model a stage's chunk is, and the other way round: chunk c of stage i is part
/// c * stages + i; in a V, part i going down and 2 * stages - 1 - i coming back.
std::int64_t part_of(PipelineKind kind, std::int64_t stages, std::int64_t stage,
                     std::int64_t chunk);
std::int64_t stage_of_part(PipelineKind kind, std::int64_t stages, std::int64_t part);

/// What `stage` runs, in order: every pass of every micro-batch and chunk once. Where the kind does
/// not split, a weight gradient follows its input gradient at once. The orders of all stages
/// together never deadlock. InternalError where why_not() has a reason, or there is no such stage.
std::vector<PipelineTask> stage_order(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                                      std::int64_t micro_batches, std::int64_t stage);

/// One micro-batch through one chunk. Nanoseconds, not negative.
struct ChunkCost {
  Nanoseconds forward = 0;
  Nanoseconds backward_input = 0;
  Nanoseconds backward_weight = 0;
  Nanoseconds recompute = 0;         ///< of the forward pass, in front of backward_input
  std::int64_t activation_bytes = 0; ///< kept from the start of the forward to the end of the
                                     ///< backward pass (with the weight gradient where not split)
  std::int64_t weight_bytes = 0;     ///< what the weight gradient needs: kept from the end of the
                                     ///< backward pass to its own end, where it is split off
};

/// What follows a stage's last pass.
struct StageTail {
  Nanoseconds synchronise = 0; ///< of gradients over data ranks, what no pass hides
  Nanoseconds update = 0;      ///< the optimiser
};

/// A step of a pipeline. Vectors that are empty stand for zeros.
struct PipelineProblem {
  PipelineKind kind = PipelineKind::one_f_one_b;
  std::int64_t stages = 1;
  std::int64_t chunks = 1; ///< a stage
  std::int64_t micro_batches = 1;
  std::vector<ChunkCost> costs; ///< of stage i's chunk c at i * chunks + c
  /// Of a micro-batch's activations from part k to part k + 1 at k, and of their gradients back;
  /// `stages * chunks - 1` of each. Not looked at between parts of one stage.
  std::vector<Nanoseconds> forward_sends, backward_sends;
  /// Sends run beside passes, one at a time on the link from a stage to a neighbour (of two stages,
  /// one link each way), in the order in which they become ready. Otherwise the sender waits until
  /// what it sent has arrived.
  bool overlap_sends = true;
  std::vector<StageTail> tails; ///< of each stage
  /// Over all stages, between synchronising and updating: norm of the gradients, check for
  /// overflows. Every stage waits for the last one there...
  Nanoseconds global_reduce = 0;
  /// ... unless stages update at once and check afterwards (Qi et al. 2023, section 4), which takes
  /// `validation` on each: then stages begin the next step as soon as they are through with theirs.
  bool validate_after_step = false;
  Nanoseconds validation = 0;
};

struct PipelineTimes {
  /// From the first pass to the last stage's update.
  Nanoseconds makespan = 0;
  /// What a step takes among steps like it. The makespan where all stages wait for each other;
  /// with validate_after_step the longest that one stage is at it.
  Nanoseconds period = 0;
  friend bool operator==(const PipelineTimes&, const PipelineTimes&) = default;
};

struct PipelineRun {
  PipelineTask task;
  Nanoseconds start = 0, end = 0;
};

struct PipelineSend {
  std::int64_t from = 0, to = 0; ///< stages
  std::int64_t part = 0;         ///< whose activations, or input gradients if `gradient`
  std::int64_t micro_batch = 0;
  bool gradient = false;
  Nanoseconds start = 0, end = 0;
};

/// A stage's step: `busy + exposed + tail + bubble` is the period.
struct StageTimes {
  Nanoseconds begin = 0, end = 0; ///< of its passes (and of sends that it waits for)
  Nanoseconds finish = 0;         ///< with the tail
  Nanoseconds busy = 0;           ///< passes, recomputation included
  /// What it waits for arrivals that are on their way or for a link, and for its own sends where
  /// they do not overlap. Before the first pass it counts only where stages wait for each other.
  Nanoseconds exposed = 0;
  Nanoseconds tail = 0;
  Nanoseconds bubble = 0; ///< the rest
  /// Pairs of micro-batch and chunk whose activations are held at a time, at most: divided by the
  /// chunks, micro-batches of a whole stage. The second counts those that only the weight gradient
  /// waits for, too.
  std::int64_t max_held = 0, max_held_or_waiting = 0;
  std::int64_t max_bytes = 0; ///< of activation_bytes and weight_bytes at a time
};

struct PipelineTimeline : PipelineTimes {
  std::vector<std::vector<PipelineRun>> runs; ///< of each stage, in its order
  std::vector<PipelineSend> sends;            ///< by sender, then in its order
  std::vector<StageTimes> stages;
};

/// Every pass and send, each as early as its stage's order, arrivals and links let it. Time and
/// memory grow with the number of passes. InternalError where why_not() has a reason, a cost is
/// negative, a vector has another length, or what a step adds up to does not fit.
PipelineTimeline simulate(const PipelineProblem& problem);
/// The same with each stage's order given. InternalError unless each holds every pass once, or
/// where stages wait for each other for ever: it names what each waits for.
PipelineTimeline simulate(const PipelineProblem& problem,
                          const std::vector<std::vector<PipelineTask>>& orders);

/// What pipeline_times() keeps from call to call: schedules of shapes that it has seen, without
/// their costs, some tens of megabytes. One a thread.
class PipelineScratch {
public:
  PipelineScratch();
  ~PipelineScratch();
  PipelineScratch(PipelineScratch&&) noexcept;
  PipelineScratch& operator=(PipelineScratch&&) noexcept;

  struct State;
  State& state() { return *state_; }

private:
  std::unique_ptr<State> state_;
};

/// What simulate() says of the times, without the list of passes. Where a short run of the same
/// stages shows that every further round of passes ends a constant later than the one before (a
/// max-plus system whose rounds depend on those next to them only), it is not run to its end.
/// Errors as simulate().
PipelineTimes pipeline_times(const PipelineProblem& problem, PipelineScratch& scratch);
Nanoseconds makespan(const PipelineProblem& problem);

/// `max_held` of simulate() by closed form: m v for GPipe, min(m, p - i) for 1F1B and H1,
/// min(m v, 2(p - 1 - i) + (v - 1)p + 1) interleaved (Korthikanti et al. 2022: stage 0 holds
/// p (1 + (p-1)/(pv)) micro-batches of its layers), min(m, 2(p - i) - 1) for H2, and in a V
/// min(m, 2p - 1 - i) + min(m, i + 1): from m = 2p - 1 on 2p halves, what 1F1B's stage 0 holds.
std::int64_t max_held(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                      std::int64_t micro_batches, std::int64_t stage);

/// Cuts layers into contiguous parts, the largest as small as can be; in such a cut, each part
/// takes its share of what is left at most, if it can: early stages hold more micro-batches. Part k
/// holds layers [result[k], result[k + 1]). `first` and `last` are the cost of what comes before
/// and after the layers (embedding, logits). Each part gets a layer: InfeasibleError with more
/// parts than layers. InternalError for fewer than one part or a negative cost.
std::vector<std::int64_t> balance(std::span<const Nanoseconds> layers, Nanoseconds first,
                                  Nanoseconds last, std::int64_t parts);

} // namespace monet
