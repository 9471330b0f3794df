#include "optimise/allocation/exact.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Plans whose bounds are looked at before their schedules are made, many at a time.
constexpr std::size_t kLeavesAtOnce = 64;

/// Depth first, without recursion: a stack of begun plans.
class BranchAndBound {
public:
  BranchAndBound(AllocationEvaluator& evaluator, const AllocationBounds& bounds,
                 Objective objective, std::size_t most, const SearchControl& control,
                 AllocationPoint& best)
      : evaluator_(evaluator), bounds_(bounds), objective_(objective),
        most_(evaluator.evaluations() + most), control_(control), best_(best) {}

  bool run(double& bound) {
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
    bound = value();
    for (const auto* list : {&open_, &leaves_}) {
      for (const Node& node : *list)
        bound = std::min(bound, node.bound);
    }
    return bound >= value();
  }

private:
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
    // The most promising is taken first: it comes last.
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

} // namespace

bool search_all(AllocationEvaluator& evaluator, const AllocationBounds& bounds, Objective objective,
                std::size_t most, const SearchControl& control, AllocationPoint& best,
                double& bound) {
  return BranchAndBound(evaluator, bounds, objective, most, control, best).run(bound);
}

} // namespace monet
