#include "monet/cluster/lockstep.hpp"

#include "cluster/lockstep/exchange.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace monet {

namespace {

using Numbers = std::vector<double>;

Numbers known_numbers(const ConstantValues& values) {
  return std::visit(
      [](const auto& known) {
        Numbers numbers;
        for (const auto value : known)
          numbers.push_back(static_cast<double>(value));
        return numbers;
      },
      values);
}

} // namespace

struct RankExecution::Machine {
  Machine(const TrainingGraph& of, const RankStep& as, const ExecuteOptions& options)
      : whole(of), ranks(as) {
    for (std::int64_t rank = 0; rank < ranks_of(ranks.mesh); ++rank) {
      executions.emplace_back(graph(), options);
      places.push_back(coordinates(ranks.mesh, rank));
    }
    give_constants();
  }

  const Graph& graph() const { return ranks.step.graph; }

  /// Parts of constants differ from rank to rank, and so do the ranks' own numbers.
  void give_constants() {
    for (const auto& [id, origin] : ranks.origins) {
      const Tensor& of = whole.graph.tensor(origin.whole);
      if (graph().tensor(id).producer || graph().tensor(id).values || !of.values)
        continue;
      const Numbers numbers = known_numbers(*of.values);
      give(id, origin, numbers);
    }
    for (const auto& [id, axis] : ranks.rank_numbers) {
      for (std::size_t rank = 0; rank < executions.size(); ++rank)
        executions[rank].set(id, Numbers{static_cast<double>(places[rank][axis])});
    }
  }

  void give(TensorId id, const TensorOrigin& origin, std::span<const double> numbers) {
    const auto& shape = whole.graph.tensor(origin.whole).shape;
    for (std::size_t rank = 0; rank < executions.size(); ++rank)
      executions[rank].set(id, take_part(numbers, shape, origin, ranks.mesh, places[rank]));
  }

  std::size_t axis_of(const Operator& op) const {
    const std::string name = op.attributes.text("mesh_axis", "");
    const auto found = std::ranges::find(ranks.mesh, name, &MeshAxis::name);
    internal_check(found != ranks.mesh.end(), fmt::format("'{}' is along no axis", op.name));
    return static_cast<std::size_t>(found - ranks.mesh.begin());
  }

  /// Every group of ranks along the axis exchanges what its members hold.
  void exchange(const Operator& op) {
    const std::size_t axis = axis_of(op);
    const auto& shape = graph().tensor(*op.inputs[0]).shape;
    for (std::size_t first = 0; first < executions.size(); ++first) {
      if (places[first][axis] != 0)
        continue;
      std::vector<std::size_t> group;
      std::vector<Numbers> held;
      for (std::size_t rank = 0; rank < executions.size(); ++rank) {
        auto at = places[rank];
        at[axis] = 0;
        if (at != places[first])
          continue;
        group.push_back(rank);
        held.push_back(executions[rank].get(*op.inputs[0]));
      }
      const std::vector<Numbers> given = exchanged_numbers(op, shape, held);
      for (std::size_t i = 0; i < group.size(); ++i)
        executions[group[i]].set(*op.outputs[0], given[i]);
    }
  }

  void run() {
    std::size_t first = 0;
    const auto& operators = graph().operators();
    for (std::size_t i = 0; i <= operators.size(); ++i) {
      if (i < operators.size() && !is_collective(operators[i]))
        continue;
      for (Execution& execution : executions)
        execution.run_part(first, i);
      if (i < operators.size())
        exchange(operators[i]);
      first = i + 1;
    }
  }

  /// What a rank holds of a whole tensor: as it was made last.
  std::optional<TensorId> held(TensorId of) const {
    std::optional<TensorId> found;
    for (const auto& [id, origin] : ranks.origins) {
      if (origin.whole == of && executions.front().has(id) && (!found || is_better(id, *found)))
        found = id;
    }
    return found;
  }
  /// Results of collectives are complete; partial sums before them are not.
  bool is_better(TensorId id, TensorId than) const {
    const auto& made = graph().tensor(id).producer;
    const auto& before = graph().tensor(than).producer;
    return made && (!before || *before < *made);
  }

  const TrainingGraph& whole;
  const RankStep& ranks;
  std::vector<Execution> executions;
  std::vector<std::vector<std::int64_t>> places;
};

RankExecution::RankExecution(const TrainingGraph& whole, const RankStep& ranks,
                             const ExecuteOptions& options)
    : machine_(std::make_unique<Machine>(whole, ranks, options)) {}
RankExecution::~RankExecution() = default;
RankExecution::RankExecution(RankExecution&&) noexcept = default;
RankExecution& RankExecution::operator=(RankExecution&&) noexcept = default;

void RankExecution::set(TensorId whole, std::span<const double> numbers) {
  for (const auto& [id, origin] : machine_->ranks.origins) {
    if (origin.whole == whole && !machine_->graph().tensor(id).producer)
      machine_->give(id, origin, numbers);
  }
}

void RankExecution::run() {
  machine_->run();
}

std::vector<double> RankExecution::get(TensorId whole) const {
  const Tensor& tensor = machine_->whole.graph.tensor(whole);
  const auto id = machine_->held(whole);
  internal_check(id.has_value(), fmt::format("no rank has '{}'", tensor.name));
  Numbers numbers(static_cast<std::size_t>(element_count(tensor)));
  for (std::size_t rank = 0; rank < machine_->executions.size(); ++rank)
    put_part(numbers, tensor.shape, machine_->executions[rank].get(*id),
             machine_->ranks.origins.at(*id), machine_->ranks.mesh, machine_->places[rank]);
  return numbers;
}

bool RankExecution::ranks_agree(TensorId whole) const {
  const Numbers together = get(whole);
  const auto id = machine_->held(whole);
  const auto& shape = machine_->whole.graph.tensor(whole).shape;
  for (std::size_t rank = 0; rank < machine_->executions.size(); ++rank) {
    if (machine_->executions[rank].get(*id) !=
        take_part(together, shape, machine_->ranks.origins.at(*id), machine_->ranks.mesh,
                  machine_->places[rank]))
      return false;
  }
  return true;
}

void RankExecution::advance() {
  for (Execution& execution : machine_->executions)
    execution.advance();
}

} // namespace monet
