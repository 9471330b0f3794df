// Pipeline schedules: their names, their assignment of the model's parts to stages, and the order
// of passes on each stage. Feeds simulate.cpp and compiled.cpp.
#include "monet/base/errors.hpp"
#include "monet/cluster/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

constexpr std::array<std::string_view, 6> kPipelineNames{"gpipe", "1f1b",  "interleaved",
                                                         "zb-h1", "zb-h2", "zb-v"};

/// Maximum number of stages, and of forward passes over all stages. They limit memory and index
/// types.
constexpr std::int64_t kMaxStages = 1 << 14, kMaxPasses = 1 << 22;

/// Appends passes to one stage's order.
class OrderWriter {
public:
  OrderWriter(std::int64_t chunks, std::int64_t micro_batches) : micro_batches_(micro_batches) {
    order_.reserve(static_cast<std::size_t>(3 * chunks * micro_batches));
  }

  /// Appends a pass. Micro-batches beyond the last one are skipped, so that callers may write the
  /// order of a longer step.
  void add(PipelinePass pass, std::int64_t micro_batch, std::int64_t chunk = 0) {
    if (micro_batch >= 0 && micro_batch < micro_batches_)
      order_.push_back({pass, micro_batch, chunk});
  }
  void forward(std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(PipelinePass::forward, micro_batch, chunk);
  }
  void backward(std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(PipelinePass::backward, micro_batch, chunk);
  }
  void weight(std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(PipelinePass::weight, micro_batch, chunk);
  }
  /// Appends both gradients, one after the other.
  void whole_backward(std::int64_t micro_batch, std::int64_t chunk = 0) {
    backward(micro_batch, chunk);
    weight(micro_batch, chunk);
  }
  std::vector<PipelineTask> take() { return std::move(order_); }

private:
  std::int64_t micro_batches_;
  std::vector<PipelineTask> order_;
};

std::vector<PipelineTask> all_forward_all_backward(std::int64_t chunks, std::int64_t m) {
  OrderWriter order(chunks, m);
  for (std::int64_t c = 0; c < chunks; ++c) {
    for (std::int64_t j = 0; j < m; ++j)
      order.forward(j, c);
  }
  for (std::int64_t c = chunks; c-- > 0;) {
    for (std::int64_t j = 0; j < m; ++j)
      order.whole_backward(j, c);
  }
  return order.take();
}

/// The order of a stage that alternates one forward and one backward pass after `warm_up` forward
/// passes. Weight gradients follow input gradients `delay` micro-batches later.
std::vector<PipelineTask> alternating(std::int64_t warm_up, std::int64_t delay, std::int64_t m) {
  OrderWriter order(1, m);
  for (std::int64_t j = 0; j < std::min(warm_up, m); ++j)
    order.forward(j);
  for (std::int64_t j = 0; j < m + delay; ++j) {
    order.forward(j + warm_up);
    order.backward(j);
    order.weight(j - delay);
  }
  return order.take();
}

/// The sequence of Megatron-LM's forward_backward_pipelining_with_interleaving: a group of p
/// micro-batches runs through one chunk, then through the next one.
class InterleavedWalk {
public:
  InterleavedWalk(std::int64_t p, std::int64_t v) : p_(p), v_(v) {}

  std::int64_t micro_batch() const { return group_ + in_group_; }
  std::int64_t chunk() const { return chunk_; }
  void step() {
    if (++in_group_ < p_)
      return;
    in_group_ = 0;
    if (++chunk_ < v_)
      return;
    chunk_ = 0;
    group_ += p_;
  }

private:
  std::int64_t p_, v_;
  std::int64_t group_ = 0, in_group_ = 0, chunk_ = 0;
};

std::vector<PipelineTask> interleaved_order(std::int64_t p, std::int64_t v, std::int64_t m,
                                            std::int64_t stage) {
  OrderWriter order(v, m);
  const std::int64_t all = m * v;
  const std::int64_t warm_up = std::min(all, 2 * (p - 1 - stage) + (v - 1) * p);
  InterleavedWalk forward(p, v), backward(p, v);
  for (std::int64_t k = 0; k < all + warm_up; ++k) {
    if (k < all) {
      order.forward(forward.micro_batch(), forward.chunk());
      forward.step();
    }
    if (k >= warm_up) {
      order.whole_backward(backward.micro_batch(), v - 1 - backward.chunk());
      backward.step();
    }
  }
  return order.take();
}

/// The order of a stage in the V schedule. It is written for at least 2p - 1 micro-batches; with
/// fewer, passes of missing micro-batches are skipped.
std::vector<PipelineTask> v_order(std::int64_t p, std::int64_t m, std::int64_t stage) {
  OrderWriter order(2, m);
  const std::int64_t written = std::max(m, 2 * p - 1);
  std::int64_t f0 = 0, f1 = 0, b0 = 0, b1 = 0;
  const auto whole_backward_of_last_chunk = [&] {
    order.forward(f1++, 1);
    order.whole_backward(b1++, 1);
  };
  for (; f0 < 2 * (p - stage) - 1; ++f0)
    order.forward(f0, 0);
  for (std::int64_t i = 0; i < stage; ++i) {
    order.forward(f1++, 1);
    order.forward(f0++, 0);
  }
  for (std::int64_t i = stage; i < p; ++i)
    whole_backward_of_last_chunk();
  while (f1 < f0 || f0 < written) {
    if (f0 < written)
      order.forward(f0++, 0);
    order.whole_backward(b0++, 0);
    whole_backward_of_last_chunk();
  }
  std::int64_t w0 = b0, w1 = b1;
  for (std::int64_t i = 0; i < stage; ++i) {
    order.backward(b0++, 0);
    order.backward(b1++, 1);
  }
  for (std::int64_t i = stage; i < p; ++i) {
    order.backward(b0++, 0);
    order.weight(w0++, 0);
  }
  while (w1 < b1)
    order.weight(w1++, 1);
  while (w0 < b0)
    order.weight(w0++, 0);
  return order.take();
}

} // namespace

std::string_view name_of(PipelineKind kind) {
  return kPipelineNames.at(static_cast<std::size_t>(kind));
}

std::span<const std::string_view> pipeline_kind_names() {
  return kPipelineNames;
}

bool splits_backward(PipelineKind kind) {
  return kind == PipelineKind::zero_bubble_h1 || kind == PipelineKind::zero_bubble_h2 ||
         kind == PipelineKind::zero_bubble_v;
}

std::optional<std::string> why_not(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                                   std::int64_t micro_batches) {
  if (stages < 1 || chunks < 1 || micro_batches < 1)
    return "needs at least one stage, chunk and micro-batch";
  if (stages > kMaxStages || chunks > kMaxPasses / stages ||
      micro_batches > kMaxPasses / (stages * chunks))
    return fmt::format(
        "has {} stages of {} chunks and {} micro-batches: more than {} stages, or {} "
        "forward passes, are too many",
        stages, chunks, micro_batches, kMaxStages, kMaxPasses);
  switch (kind) {
  case PipelineKind::gpipe:
    return std::nullopt;
  case PipelineKind::interleaved:
    if (chunks > 1 && micro_batches % stages != 0)
      return fmt::format("needs a number of micro-batches that is a multiple of the {} stages, and "
                         "{} is not",
                         stages, micro_batches);
    return std::nullopt;
  case PipelineKind::zero_bubble_v:
    if (chunks != 2)
      return fmt::format("has two chunks a stage, not {}", chunks);
    return std::nullopt;
  default:
    if (chunks != 1)
      return fmt::format("has one chunk a stage, not {} (interleaved has more)", chunks);
    return std::nullopt;
  }
}

std::string to_string(const PipelineTask& task, std::int64_t chunks) {
  const char letter = "FBW"[static_cast<std::size_t>(task.pass)];
  return chunks > 1 ? fmt::format("{}{}.{}", letter, task.micro_batch, task.chunk)
                    : fmt::format("{}{}", letter, task.micro_batch);
}

std::int64_t part_of(PipelineKind kind, std::int64_t stages, std::int64_t stage,
                     std::int64_t chunk) {
  if (kind == PipelineKind::zero_bubble_v && chunk == 1)
    return 2 * stages - 1 - stage;
  return chunk * stages + stage;
}

std::int64_t stage_of_part(PipelineKind kind, std::int64_t stages, std::int64_t part) {
  if (kind == PipelineKind::zero_bubble_v && part >= stages)
    return 2 * stages - 1 - part;
  return part % stages;
}

std::vector<PipelineTask> stage_order(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                                      std::int64_t micro_batches, std::int64_t stage) {
  const auto reason = why_not(kind, stages, chunks, micro_batches);
  internal_check(!reason, reason ? "no such schedule: " + *reason : "");
  internal_check(stage >= 0 && stage < stages, "no such stage");
  const std::int64_t below = stages - 1 - stage;
  switch (kind) {
  case PipelineKind::gpipe:
    return all_forward_all_backward(chunks, micro_batches);
  case PipelineKind::one_f_one_b:
    return alternating(below, 0, micro_batches);
  case PipelineKind::interleaved:
    return chunks == 1 ? alternating(below, 0, micro_batches)
                       : interleaved_order(stages, chunks, micro_batches, stage);
  case PipelineKind::zero_bubble_h1:
    return alternating(below, stage, micro_batches);
  case PipelineKind::zero_bubble_h2:
    return alternating(2 * below, 2 * stage, micro_batches);
  case PipelineKind::zero_bubble_v:
    return v_order(stages, micro_batches, stage);
  }
  throw InternalError("unknown schedule");
}

std::int64_t max_held(PipelineKind kind, std::int64_t stages, std::int64_t chunks,
                      std::int64_t micro_batches, std::int64_t stage) {
  const std::int64_t below = stages - 1 - stage;
  switch (kind) {
  case PipelineKind::gpipe:
    return micro_batches * chunks;
  case PipelineKind::interleaved:
    if (chunks > 1)
      return std::min(micro_batches * chunks, 2 * below + (chunks - 1) * stages + 1);
    return std::min(micro_batches, below + 1);
  case PipelineKind::zero_bubble_h2:
    return std::min(micro_batches, 2 * below + 1);
  case PipelineKind::zero_bubble_v:
    return std::min(micro_batches, 2 * stages - 1 - stage) + std::min(micro_batches, stage + 1);
  default:
    return std::min(micro_batches, below + 1);
  }
}

} // namespace monet
