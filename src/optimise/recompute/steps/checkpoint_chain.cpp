// Cuts the forward part into a chain of blocks and plans it with solve_chain();
// checkpoint_search.cpp starts from these plans.
#include "optimise/recompute/steps/checkpoint_chain.hpp"

#include "base/shared/checked.hpp"
#include "optimise/shared/chain_dp.hpp"

#include <algorithm>

namespace monet {

namespace {

constexpr std::size_t kLevels = 200;
constexpr std::size_t kFewest = 3; // minimum number of blocks

class StepChain {
public:
  explicit StepChain(const CheckpointSpace& space)
      : space_(space), problem_(space.problem), block_of_(problem_.ops.size(), 0),
        crosses_(problem_.buffers.size(), 0) {
    cut();
    if (blocks_.size() < kFewest)
      return;
    size();
    share_backward();
  }

  bool is_chain() const { return blocks_.size() >= kFewest; }
  std::vector<ChainLayer> layers() const {
    std::vector<ChainLayer> layers;
    for (const Block& block : blocks_)
      layers.push_back(block.layer);
    return layers;
  }

  /// Converts runs of blocks to runs of operators.
  RecomputePlan plan(const RecomputePlan& of_blocks) const {
    RecomputePlan plan;
    std::vector<std::uint8_t> done(blocks_.size(), 0);
    for (const std::uint32_t run : of_blocks.runs) {
      if (run >= blocks_.size()) {
        const auto& list = blocks_[2 * blocks_.size() - 1 - run].backward;
        plan.runs.insert(plan.runs.end(), list.begin(), list.end());
        continue;
      }
      for (const std::uint32_t op : blocks_[run].forward)
        if (done[run] == 0 || problem_.ops[op].repeatable)
          plan.runs.push_back(op);
      done[run] = 1;
    }
    return plan;
  }

private:
  struct Block {
    ChainLayer layer;
    std::vector<std::uint32_t> forward, backward;
  };

  bool is_forward(std::uint32_t op) const { return space_.backward[op] == 0; }

  /// Ends a block after each operator where a single repeatable buffer crosses, if gradients also
  /// read that buffer.
  void cut() {
    std::vector<std::uint32_t> last(problem_.buffers.size(), 0);
    std::uint32_t end = 0;
    for (std::uint32_t i = 0; i < problem_.ops.size(); ++i) {
      if (!is_forward(i))
        continue;
      end = i;
      for (const std::uint32_t b : problem_.ops[i].reads)
        last[b] = i;
    }
    std::vector<std::uint32_t> open; // made so far and read later
    blocks_.emplace_back();
    for (std::uint32_t i = 0; i <= end; ++i) {
      if (!is_forward(i))
        continue;
      block_of_[i] = static_cast<std::uint32_t>(blocks_.size() - 1);
      blocks_.back().forward.push_back(i);
      std::erase_if(open, [&](std::uint32_t b) { return last[b] <= i; });
      if (problem_.ops[i].repeatable)
        for (const std::uint32_t b : problem_.ops[i].writes)
          if (last[b] > i)
            open.push_back(b);
      if (i != end && open.size() == 1 && space_.needed[open.front()] != 0 &&
          crosses_[open.front()] == 0) {
        crosses_[open.front()] = 1;
        blocks_.back().layer.bytes = problem_.buffers[open.front()].bytes;
        blocks_.back().layer.gradient_bytes = blocks_.back().layer.bytes;
        blocks_.emplace_back();
      }
    }
  }

  void size() {
    for (Block& block : blocks_) {
      for (const std::uint32_t op : block.forward) {
        if (!problem_.ops[op].repeatable)
          continue;
        block.layer.forward_cost = checked_add(block.layer.forward_cost, problem_.ops[op].cost);
        for (const std::uint32_t b : problem_.ops[op].writes)
          if (space_.needed[b] != 0 && crosses_[b] == 0)
            block.layer.tape_bytes = checked_add(block.layer.tape_bytes, problem_.buffers[b].bytes);
      }
    }
  }

  /// Assigns operators of the backward part and updates to the first block of which they or an
  /// earlier operator read data. Assigns a crossing buffer to the block that reads it.
  void share_backward() {
    auto at = static_cast<std::uint32_t>(blocks_.size() - 1);
    for (std::uint32_t i = 0; i < problem_.ops.size(); ++i) {
      if (is_forward(i))
        continue;
      for (const std::uint32_t b : problem_.ops[i].reads) {
        const auto producer = problem_.buffers[b].producer;
        if (producer && is_forward(*producer) && problem_.ops[*producer].repeatable)
          at = std::min(at, block_of_[*producer] + crosses_[b]);
      }
      blocks_[at].backward.push_back(i);
    }
  }

  const CheckpointSpace& space_;
  const RecomputeProblem& problem_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_; ///< per operator of the forward part
  std::vector<std::uint32_t> crosses_;  ///< per buffer: 1 if it crosses two blocks
};

} // namespace

std::vector<RecomputePlan> chain_plans(const CheckpointSpace& space, std::size_t budgets,
                                       const SearchControl& control) {
  std::vector<RecomputePlan> plans;
  if (space.micro.back() != 0)
    return plans;
  const StepChain chain(space);
  if (!chain.is_chain())
    return plans;
  const std::vector<ChainLayer> layers = chain.layers();
  const RecomputeProblem problem = chain_problem(layers);
  const std::int64_t most = replay(problem, store_everything(problem)).peak_bytes;
  for (std::size_t i = budgets; i > 0 && !control.interrupted(); --i) {
    const auto budget = static_cast<std::int64_t>(
        static_cast<double>(most) * static_cast<double>(i) / static_cast<double>(budgets + 1));
    const RecomputeResult found = solve_chain(layers, budget, kLevels, control);
    if (!found.plan)
      break;
    plans.push_back(chain.plan(*found.plan));
  }
  return plans;
}

} // namespace monet
