// Pipeline schedules: the order of forward passes, input gradients and weight gradients on every
// stage, and the time and memory of a step with these orders. Times are exact, in whole
// nanoseconds.
//
// A model is cut into `stages * chunks` parts in the order of the data. For one micro-batch, part
// k's forward pass needs that of part k - 1, and its backward pass that of part k + 1. Its weight
// gradient needs its backward pass. Parts on different stages communicate through sends.
// Example:
//   Nanoseconds equal_stages(std::int64_t stages, std::int64_t micro_batches) {
//     PipelineProblem problem;
//     problem.kind = PipelineKind::zero_bubble_h1;
//     problem.stages = stages;
//     problem.micro_batches = micro_batches;
//     problem.costs.assign(static_cast<std::size_t>(stages), {1000, 1000, 1000});
//     return makespan(problem);
//   }
#pragma once

#include "monet/cluster/cluster.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Kind of schedule, for p stages, v chunks per stage and m micro-batches. F, B, W: time of forward
/// pass, input gradient and weight gradient of a whole stage. The bubbles given below assume equal
/// stages and no sends.
enum class PipelineKind : std::uint8_t {
  /// All forward passes, then all backward passes (Huang et al. 2019). Bubble (p-1)(F+B+W). With
  /// more chunks it is breadth-first (Lamy-Poirier 2022), and the bubble is divided by v if m >= p.
  gpipe,
  /// One forward, one backward (Narayanan et al. 2019, 2021; PipeDream-Flush). GPipe's bubble; at
  /// most p micro-batches are held.
  one_f_one_b,
  /// 1F1B over v chunks per stage, in Megatron-LM's order (Narayanan et al. 2021). The bubble of
  /// 1F1B divided by v, and v times the sends. m must be a multiple of p.
  interleaved,
  /// Zero bubble with the memory of 1F1B (Qi et al. 2023, "Zero Bubble Pipeline Parallelism"):
  /// weight gradients of stage i are delayed by i micro-batches. Bubble (p-1)(F+B-W).
  zero_bubble_h1,
  /// Zero bubble with up to 2p - 1 micro-batches held (Qi et al. 2023). Bubble (p-1)(F+B-2W) if
  /// that is not negative and m >= 2p - 1.
  zero_bubble_h2,
  /// Two chunks per stage, in a V: down the stages and back up (Qi et al. 2024, "Pipeline
  /// Parallelism with Controllable Memory"), in the order of PyTorch's ScheduleZBVZeroBubble. No
  /// bubble for F = B = W; every stage holds as much as stage 0 of 1F1B.
  zero_bubble_v,
};

/// Name of a kind in files: "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v".
std::string_view name_of(PipelineKind kind);
/// Names of all kinds, in the order of the enumeration.
std::span<const std::string_view> pipeline_kind_names();
/// Whether weight gradients are separate passes, so that the gradient of a part's input is sent
/// before they run. Otherwise a backward pass computes both and sends at its end.
bool splits_backward(PipelineKind kind);

/// Reason why a schedule does not exist, for the user ("needs a number of micro-batches that is a
/// multiple of the 4 stages, and 6 is not"); nullopt if it exists. More than 2^14 stages, or 2^22
/// pairs of part and micro-batch, are rejected.
std::optional<std::string> why_not(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                                   std::int64_t micro_batches);

/// Kind of a pass.
enum class PipelinePass : std::uint8_t {
  forward,
  backward, ///< gradient of the input: dX
  weight,   ///< gradient of the weights: dW
};

/// One pass of one micro-batch on a stage.
struct PipelineTask {
  PipelinePass pass = PipelinePass::forward;
  std::int64_t micro_batch = 0;
  std::int64_t chunk = 0; ///< index within the stage
  friend auto operator<=>(const PipelineTask&, const PipelineTask&) = default;
};
/// Short name of a pass: "F3" (micro-batch 3), or "F3.1" for chunk 1 if there are several chunks.
std::string to_string(const PipelineTask& task, std::int64_t chunks);

/// Part of the model that a stage's chunk holds: c * stages + i for chunk c of stage i. In a V,
/// part i on the way down and 2 * stages - 1 - i on the way back.
std::int64_t part_of(PipelineKind kind, std::int64_t stages, std::int64_t stage,
                     std::int64_t chunk);
/// Stage that holds a part of the model: the inverse of part_of().
std::int64_t stage_of_part(PipelineKind kind, std::int64_t stages, std::int64_t part);

/// Order of the passes on `stage`: every pass of every micro-batch and chunk once. If the kind does
/// not split backward passes, a weight gradient directly follows its input gradient. The orders of
/// all stages together never deadlock. Throws InternalError if why_not() has a reason or the stage
/// does not exist.
std::vector<PipelineTask> stage_order(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                                      std::int64_t micro_batches, std::int64_t stage);

/// Cost of one micro-batch on one chunk. Times are in nanoseconds; nothing is negative.
struct ChunkCost {
  Nanoseconds forward = 0;
  Nanoseconds backward_input = 0;
  Nanoseconds backward_weight = 0;
  Nanoseconds recompute = 0;         ///< recomputation of the forward pass, before backward_input
  std::int64_t activation_bytes = 0; ///< kept from the start of the forward pass to the end of the
                                     ///< backward pass (including the weight gradient if not split)
  std::int64_t weight_bytes = 0;     ///< inputs of a split weight gradient, kept until its end
};

/// Work after a stage's last pass.
struct StageTail {
  Nanoseconds synchronise = 0; ///< exposed time of the exchange of gradients over data ranks
  Nanoseconds update = 0;      ///< the optimiser
};

/// Input of a pipeline simulation. An empty vector stands for zeros.
struct PipelineProblem {
  PipelineKind kind = PipelineKind::one_f_one_b;
  std::int64_t stages = 1;
  std::int64_t chunks = 1; ///< number of chunks per stage
  std::int64_t micro_batches = 1;
  std::vector<ChunkCost> costs; ///< cost of stage i's chunk c at i * chunks + c
  /// Times of sending one micro-batch's activations from part k to part k + 1, at index k, and of
  /// sending their gradients back. `stages * chunks - 1` elements each. Entries between parts of
  /// one stage are ignored.
  std::vector<Nanoseconds> forward_sends, backward_sends;
  /// Whether sends overlap with passes. Each link from a stage to a neighbour (with two stages, one
  /// link each way) then carries one send at a time, in the order in which they become ready.
  /// Otherwise the sender waits until its data have arrived.
  bool overlap_sends = true;
  std::vector<StageTail> tails; ///< tail of each stage
  /// Time of a reduction over all stages between the exchange of gradients and the update: gradient
  /// norm, overflow check. Every stage waits there for the last one, except with
  /// `validate_after_step`.
  Nanoseconds global_reduce = 0;
  /// Whether stages update at once and validate afterwards (Qi et al. 2023, section 4), which takes
  /// `validation` on each. A stage then begins the next step as soon as it has finished this one.
  bool validate_after_step = false;
  Nanoseconds validation = 0;
};

/// Times of a pipeline's step.
struct PipelineTimes {
  /// Time from the first pass to the last stage's update.
  Nanoseconds makespan = 0;
  /// Time per step in a sequence of equal steps: the makespan if all stages wait for each other;
  /// with validate_after_step, the maximum time that any stage spends on a step.
  Nanoseconds period = 0;
  friend bool operator==(const PipelineTimes&, const PipelineTimes&) = default;
};

/// Interval in which a pass runs.
struct PipelineRun {
  PipelineTask task;
  Nanoseconds start = 0, end = 0;
};

/// Interval in which data move between two stages.
struct PipelineSend {
  std::int64_t from = 0, to = 0; ///< stages
  std::int64_t part = 0; ///< sender of the activations, or of the input gradients if `gradient`
  std::int64_t micro_batch = 0;
  bool gradient = false;
  Nanoseconds start = 0, end = 0;
};

/// Breakdown of a stage's step: `busy + exposed + tail + bubble` is the period.
struct StageTimes {
  Nanoseconds begin = 0,
              end = 0;    ///< first and last time of its passes (and of sends that it waits for)
  Nanoseconds finish = 0; ///< end of the tail
  Nanoseconds busy = 0;   ///< passes, including recomputation
  /// Time spent waiting for data in transit or for a link, and for the stage's own sends if they do
  /// not overlap. Waiting before the first pass counts only if stages wait for each other.
  Nanoseconds exposed = 0;
  Nanoseconds tail = 0;
  Nanoseconds bubble = 0; ///< the remaining time
  /// Maximum number of pairs of micro-batch and chunk held at a time; divided by the chunks, it
  /// counts micro-batches of a whole stage. `max_held` counts pairs with stored activations;
  /// `max_held_or_waiting` adds those with a pending weight gradient.
  std::int64_t max_held = 0, max_held_or_waiting = 0;
  std::int64_t max_bytes = 0; ///< peak of activation_bytes plus weight_bytes
};

/// All passes and sends of a step, with each stage's times.
struct PipelineTimeline : PipelineTimes {
  std::vector<std::vector<PipelineRun>> runs; ///< passes of each stage, in its order
  std::vector<PipelineSend> sends;            ///< sends by sender, then in its order
  std::vector<StageTimes> stages;
};

/// Simulates a step. Each pass and send runs as early as the stage's order, arrivals and links
/// allow. Time and memory grow with the number of passes. Throws InternalError if why_not() has a
/// reason, a cost is negative, a vector has a wrong length, or a sum overflows.
PipelineTimeline simulate(const PipelineProblem& problem);
/// Simulates a step with given orders of the stages. Throws InternalError unless every order holds
/// every pass once. Also throws it on a deadlock, and names the pass that each stage waits for.
PipelineTimeline simulate(const PipelineProblem& problem,
                          const std::vector<std::vector<PipelineTask>>& orders);

/// Cache of pipeline_times(): compiled schedules by shape, without costs; some tens of megabytes.
/// Use one per thread.
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

/// Times as in simulate(), without the list of passes. If every round of passes in a short run of
/// the same stages ends a constant time after the previous one, the rest is extrapolated. The
/// extrapolation is exact: the schedule is a max-plus system whose rounds depend only on their
/// neighbours. Errors as simulate().
PipelineTimes pipeline_times(const PipelineProblem& problem, PipelineScratch& scratch);
/// Makespan of a step, as in simulate().
Nanoseconds makespan(const PipelineProblem& problem);

/// Maximum number of pairs of micro-batch and chunk held on stage i, as simulate() reports it, in
/// closed form.
/// GPipe: m v. 1F1B and H1: min(m, p - i). H2: min(m, 2(p - i) - 1).
/// Interleaved: min(m v, 2(p - 1 - i) + (v - 1)p + 1) (Korthikanti et al. 2022: stage 0
/// holds p (1 + (p-1)/(pv)) micro-batches of its layers).
/// V: min(m, 2p - 1 - i) + min(m, i + 1). From m = 2p - 1 on that is 2p halves, as much as stage 0
/// of 1F1B holds.
std::int64_t max_held(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                      std::int64_t micro_batches, std::int64_t stage);

/// Partitions layers into contiguous parts that minimise the maximum cost of a part. Among such
/// partitions, each part in turn takes at most the mean of the remaining costs if possible, because
/// early stages hold more micro-batches. Part k holds layers [result[k], result[k + 1]). `first`
/// and `last` are the costs before and after the layers (embedding, logits). Every part has at
/// least one layer: throws InfeasibleError if there are more parts than layers. Throws
/// InternalError for fewer than one part or a negative cost.
std::vector<std::int64_t> balance(std::span<const Nanoseconds> layers, Nanoseconds first,
                                  Nanoseconds last, std::int64_t parts);

} // namespace monet
