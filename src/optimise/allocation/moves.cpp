// Random changes of an allocation plan and simple plans to start from; local and genetic search use
// them.
#include "optimise/allocation/moves.hpp"

#include <algorithm>

namespace monet {

AllocationMoves::AllocationMoves(const AllocationEvaluator& evaluator)
    : choices_(evaluator.choices()), neighbours_(choices_.size()) {
  const Graph& graph = evaluator.step().graph;
  for (std::uint32_t op = 0; op < choices_.size(); ++op) {
    if (choices_[op].size() > 1)
      free_.push_back(op);
    for (const Access& access : graph.operators()[op].nest.operands) {
      const auto producer = graph.tensor(access.tensor).producer;
      if (access.mode != AccessMode::read || !producer || producer->value == op)
        continue;
      neighbours_[op].push_back(producer->value);
      neighbours_[producer->index()].push_back(op);
    }
  }
  for (std::size_t c = 0; c < evaluator.chip().compute_cores(); ++c)
    cores_.emplace_back(c);
}

std::size_t AllocationMoves::any_operator(RandomStream& random) const {
  return free_[static_cast<std::size_t>(random.below(free_.size()))];
}

void AllocationMoves::change(AllocationPlan& plan, RandomStream& random) const {
  if (free_.empty())
    return;
  const double kind = random.unit();
  if (kind < 0.5)
    change_one(plan, random);
  else if (kind < 0.7)
    change_run(plan, random);
  else if (kind < 0.9)
    follow(plan, random);
  else
    swap(plan, random);
}

void AllocationMoves::change_one(AllocationPlan& plan, RandomStream& random) const {
  const std::size_t op = any_operator(random);
  plan[op] = static_cast<std::uint32_t>(random.below(choices_[op].size()));
}

void AllocationMoves::set_cores(std::size_t op, const Cores& cores, AllocationPlan& plan,
                                RandomStream& random) const {
  std::uint32_t found = 0;
  for (std::uint32_t c = 0; c < choices_[op].size(); ++c) {
    if (choices_[op][c].cores == cores && random.below(++found) == 0)
      plan[op] = c;
  }
}

void AllocationMoves::change_run(AllocationPlan& plan, RandomStream& random) const {
  const std::size_t first = any_operator(random);
  const auto& choice =
      choices_[first][static_cast<std::size_t>(random.below(choices_[first].size()))];
  const std::size_t last =
      std::min(choices_.size(), first + 2 + static_cast<std::size_t>(random.below(8)));
  for (std::size_t op = first; op < last; ++op)
    set_cores(op, choice.cores, plan, random);
}

void AllocationMoves::follow(AllocationPlan& plan, RandomStream& random) const {
  const std::size_t op = any_operator(random);
  if (neighbours_[op].empty())
    return;
  const std::uint32_t other =
      neighbours_[op][static_cast<std::size_t>(random.below(neighbours_[op].size()))];
  set_cores(op, choices_[other][plan[other]].cores, plan, random);
}

void AllocationMoves::swap(AllocationPlan& plan, RandomStream& random) const {
  const std::size_t a = any_operator(random);
  const std::size_t b = any_operator(random);
  const Cores of_a = choices_[a][plan[a]].cores;
  set_cores(a, choices_[b][plan[b]].cores, plan, random);
  set_cores(b, of_a, plan, random);
}

std::vector<AllocationPlan> AllocationMoves::simple_plans() const {
  constexpr std::size_t kMaxCores = 16;
  std::vector<AllocationPlan> plans;
  RandomStream unused(0);
  AllocationPlan widest(choices_.size(), 0);
  for (std::size_t op = 0; op < choices_.size(); ++op) {
    for (std::uint32_t c = 0; c < choices_[op].size(); ++c) {
      if (choices_[op][c].cores.size() > choices_[op][widest[op]].cores.size())
        widest[op] = c;
    }
  }
  plans.push_back(widest);
  for (std::size_t i = 0; i < std::min(kMaxCores, cores_.size()); ++i) {
    AllocationPlan plan(choices_.size(), 0);
    for (std::size_t op = 0; op < plan.size(); ++op)
      set_cores(op, {cores_[i]}, plan, unused);
    plans.push_back(std::move(plan));
  }
  return plans;
}

} // namespace monet
