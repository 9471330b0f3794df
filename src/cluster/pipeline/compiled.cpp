// Compiles the shape of a pipeline schedule into one list of passes in dependency order, and
// describes the rounds in which it repeats. Feeds the fast evaluation in times.cpp.
#include "cluster/pipeline/problem.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

/// Merges the orders of all stages into one list, one pass per stage in turn, and assigns slots to
/// the sends.
class PipelineCompiler {
public:
  PipelineCompiler(const PipelineShape& shape, bool with_places)
      : shape_(shape), split_(splits_backward(shape.kind)), parts_(shape.stages * shape.chunks),
        arrivals_(static_cast<std::size_t>(2 * parts_ * shape.micro_batches), 0) {
    for (std::int64_t i = 0; i < shape.stages; ++i) {
      std::vector<PipelineTask> order =
          stage_order(shape.kind, shape.stages, shape.chunks, shape.micro_batches, i);
      if (!split_)
        std::erase_if(order, [](const PipelineTask& t) { return t.pass == PipelinePass::weight; });
      left_ += order.size();
      orders_.push_back(std::move(order));
    }
    out_.passes.reserve(left_);
    for (std::int64_t part = 0; part < parts_; ++part)
      stage_of_.push_back(stage_of_part(shape.kind, shape.stages, part));
    if (with_places)
      out_.places.resize(orders_.size());
  }

  CompiledPipeline run() {
    std::vector<std::size_t> next(orders_.size(), 0);
    while (left_ > 0) {
      const std::size_t before = left_;
      for (std::size_t i = 0; i < orders_.size(); ++i) {
        if (next[i] < orders_[i].size() &&
            append(static_cast<std::int64_t>(i), orders_[i][next[i]])) {
          ++next[i];
          --left_;
        }
      }
      internal_check(left_ < before, "the stages of a schedule wait for each other");
    }
    return std::move(out_);
  }

private:
  std::uint32_t& arrival(std::int64_t part, std::int64_t micro_batch, bool gradient) {
    return arrivals_[static_cast<std::size_t>(2 * (part * shape_.micro_batches + micro_batch) +
                                              (gradient ? 1 : 0))];
  }
  bool on_stage(std::int64_t part, std::int64_t stage) const {
    return stage_of_[static_cast<std::size_t>(part)] == stage;
  }

  /// Appends a pass. Returns false if the pass that sends its input is not in the list yet.
  bool append(std::int64_t stage, const PipelineTask& task) {
    const std::int64_t part = part_of(shape_.kind, shape_.stages, stage, task.chunk);
    const bool gradient = task.pass == PipelinePass::backward;
    CompiledPass pass{CompiledPipeline::kNoInput, CompiledPipeline::kNoOutput,
                      static_cast<std::uint32_t>((stage * shape_.chunks + task.chunk) * 3 +
                                                 static_cast<std::int64_t>(task.pass)),
                      static_cast<std::uint16_t>(stage), CompiledPipeline::kNoLink};
    if (task.pass != PipelinePass::weight) {
      const std::int64_t from = gradient ? part + 1 : part - 1;
      // Inputs from the same stage need no slot: the stage's order already puts them first.
      if (from >= 0 && from < parts_ && !on_stage(from, stage)) {
        pass.input = arrival(part, task.micro_batch, gradient);
        if (pass.input == 0)
          return false;
        free_.push_back(pass.input);
      }
      const std::int64_t to = gradient ? part - 1 : part + 1;
      if (to >= 0 && to < parts_ && !on_stage(to, stage)) {
        pass.output = new_slot();
        arrival(to, task.micro_batch, gradient) = pass.output;
        const bool onward = on_stage(to, stage + 1 < shape_.stages ? stage + 1 : 0);
        pass.link = static_cast<std::uint16_t>(1 + 2 * stage + (onward ? 0 : 1));
      }
    }
    if (!out_.places.empty())
      out_.places[static_cast<std::size_t>(stage)].push_back(
          static_cast<std::uint32_t>(out_.passes.size()));
    out_.passes.push_back(pass);
    return true;
  }

  std::uint32_t new_slot() {
    if (free_.empty())
      return out_.slots++;
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  PipelineShape shape_;
  bool split_;
  std::int64_t parts_;
  std::vector<std::int64_t> stage_of_;  ///< by part
  std::vector<std::uint32_t> arrivals_; ///< slots; 0: not sent yet
  std::vector<std::vector<PipelineTask>> orders_;
  std::vector<std::uint32_t> free_;
  std::size_t left_ = 0;
  CompiledPipeline out_;
};

std::int64_t warm_up_of_first(const PipelineShape& shape) {
  const std::int64_t below = shape.stages - 1;
  switch (shape.kind) {
  case PipelineKind::zero_bubble_h2:
    return 2 * below;
  case PipelineKind::zero_bubble_v: // its forward passes end this many rounds before the last round
    return 2 * below + 1;
  case PipelineKind::interleaved:
    return shape.chunks == 1 ? below : 2 * below + (shape.chunks - 1) * shape.stages;
  default:
    return below;
  }
}

} // namespace

CompiledPipeline compile_pipeline(const PipelineShape& shape, bool with_places) {
  constexpr std::int64_t kMaxLinks = std::numeric_limits<std::uint16_t>::max();
  internal_check(2 * shape.stages < kMaxLinks, "a pipeline has too many stages");
  return PipelineCompiler(shape, with_places).run();
}

PipelineRounds rounds_of(const PipelineShape& shape) {
  PipelineRounds rounds;
  const std::int64_t m = shape.micro_batches, below = shape.stages - 1;
  std::int64_t all = m - warm_up_of_first(shape);
  switch (shape.kind) {
  case PipelineKind::gpipe:
    all = 0;
    break;
  case PipelineKind::zero_bubble_h1: // the last stage delays weight gradients by this many rounds
    rounds.first = below;
    break;
  case PipelineKind::zero_bubble_h2:
    rounds.first = 2 * below;
    rounds.reach = 2;
    break;
  case PipelineKind::interleaved:
    if (shape.chunks > 1) {
      rounds.step = shape.stages;
      all = (m * shape.chunks - warm_up_of_first(shape)) / (shape.stages * shape.chunks);
    }
    break;
  default:
    break;
  }
  rounds.count = std::max<std::int64_t>(all - rounds.first, 0);
  return rounds;
}

RoundPlace round_place(const PipelineShape& shape, std::int64_t stage, std::int64_t round) {
  const std::int64_t p = shape.stages, below = p - 1 - stage;
  const auto delayed = [&](std::int64_t warm_up, std::int64_t delay) {
    return RoundPlace{warm_up + 2 * round + std::max<std::int64_t>(round - delay, 0), 3};
  };
  switch (shape.kind) {
  case PipelineKind::zero_bubble_h1:
    return delayed(below, stage);
  case PipelineKind::zero_bubble_h2:
    return delayed(2 * below, 2 * stage);
  case PipelineKind::zero_bubble_v: // warm-up: forward passes, forward pairs, then F B W triples
    return {2 * below + 1 + 2 * stage + 3 * (below + 1) + 6 * round, 6};
  case PipelineKind::interleaved:
    if (shape.chunks > 1)
      return {2 * below + (shape.chunks - 1) * p + 2 * p * shape.chunks * round,
              2 * p * shape.chunks};
    [[fallthrough]];
  default:
    return {below + 2 * round, 2};
  }
}

} // namespace monet
