// Branch and bound over all allocations of a small space; allocation/search.cpp calls it.
#pragma once

#include "monet/optimise/allocation.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace monet {

struct AllocationProof {
  bool is_whole = false; ///< false if the control or the maximum of evaluations ended the search
  double bound = 0;      ///< lower bound on all plans; with `is_whole`, the value of the best
};

/// Depth-first branch and bound over partial plans, with a stack in place of recursion: operators
/// in topological order, choices by their bound. Plans whose bound is no better than the incumbent
/// are pruned.
class BranchAndBound {
public:
  /// `best` holds an initial plan and, after run(), the best one. The search takes at most
  /// `options.exact_plans` + 1 evaluations.
  BranchAndBound(AllocationEvaluator& evaluator, const AllocationBounds& bounds,
                 const AllocationSearchOptions& options, const SearchControl& control,
                 AllocationPoint& best)
      : evaluator_(evaluator), bounds_(bounds), objective_(options.objective),
        most_(evaluator.evaluations() + static_cast<std::size_t>(options.exact_plans) + 1),
        control_(control), best_(best) {}

  AllocationProof run() {
    open_.push_back({{}, bounds_.bound(objective_)});
    while (!open_.empty() && evaluator_.evaluations() < most_ && !control_.interrupted()) {
      const Node node = std::move(open_.back());
      open_.pop_back();
      if (node.bound >= value())
        continue;
      if (node.begin.size() == evaluator_.choices().size())
        leaves_.push_back(node);
      else
        branch(node);
      if (leaves_.size() >= kLeavesAtOnce || open_.empty())
        evaluate();
    }
    if (!leaves_.empty() && evaluator_.evaluations() < most_)
      evaluate();
    double bound = value();
    for (const auto* list : {&open_, &leaves_}) {
      for (const Node& node : *list)
        bound = std::min(bound, node.bound);
    }
    return {bound >= value(), bound};
  }

private:
  /// Complete plans whose schedules are evaluated together.
  static constexpr std::size_t kLeavesAtOnce = 64;

  struct Node {
    AllocationPlan begin;
    double bound = 0;
  };

  double value() const { return best_.figures.value(objective_); }

  void branch(const Node& node) {
    std::vector<Node> children;
    const auto choices = static_cast<std::uint32_t>(evaluator_.choices()[node.begin.size()].size());
    for (std::uint32_t c = 0; c < choices; ++c) {
      Node child = node;
      child.begin.push_back(c);
      child.bound = std::max(node.bound, bounds_.bound(objective_, child.begin));
      if (child.bound < value())
        children.push_back(std::move(child));
    }
    // The child with the lowest bound is pushed last, so it is visited first.
    std::ranges::stable_sort(children, std::ranges::greater{}, &Node::bound);
    for (Node& child : children)
      open_.push_back(std::move(child));
  }

  void evaluate() {
    std::erase_if(leaves_, [&](const Node& leaf) { return leaf.bound >= value(); });
    std::vector<AllocationPlan> plans;
    for (const Node& leaf : leaves_)
      plans.push_back(leaf.begin);
    const auto costs = evaluator_.evaluate(plans, control_);
    std::vector<Node> left;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!costs[i])
        left.push_back(std::move(leaves_[i]));
      else if (costs[i]->value(objective_) < value())
        best_ = {plans[i], *costs[i]};
    }
    leaves_ = std::move(left);
    control_.tell({"allocation: branch and bound",
                   static_cast<std::int64_t>(evaluator_.evaluations()), 0, value(),
                   bounds_.bound(objective_)});
  }

  AllocationEvaluator& evaluator_;
  const AllocationBounds& bounds_;
  Objective objective_;
  std::size_t most_;
  const SearchControl& control_;
  AllocationPoint& best_;
  std::vector<Node> open_;
  std::vector<Node> leaves_;
};

} // namespace monet
