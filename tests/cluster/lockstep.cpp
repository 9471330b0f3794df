#include "cluster/lockstep.hpp"

#include "cluster/exchange.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace monet::test {

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

/// All ranks of one stage, which run the same operators at once.
struct Stage {
  const Graph* graph = nullptr;
  const StageStep* part = nullptr;   ///< null: all of the rank's step
  std::vector<Execution> executions; ///< by rank
  std::size_t next = 0;              ///< operator

  std::size_t size() const { return graph->operators().size(); }
  bool is_done() const { return next == size(); }
  TensorId of(TensorId own) const { return part ? part->of[own.index()] : own; }
  std::optional<TensorId> own(TensorId id) const {
    if (!part)
      return id;
    const auto found = part->made.find(id);
    return found == part->made.end() ? std::nullopt : std::optional(found->second);
  }
};

} // namespace

struct RankExecution::Machine {
  Machine(const TrainingGraph& of, const RankStep& as, std::span<const StageStep> parts,
          const ExecuteOptions& options)
      : whole(of), ranks(as) {
    for (std::int64_t rank = 0; rank < ranks_of(ranks.mesh); ++rank)
      places.push_back(coordinates(ranks.mesh, rank));
    for (const StageStep& part : parts)
      stages.push_back({&part.step.graph, &part, {}});
    if (parts.empty())
      stages.push_back({&ranks.step.graph, nullptr, {}});
    for (Stage& stage : stages) {
      for (std::size_t rank = 0; rank < places.size(); ++rank)
        stage.executions.emplace_back(*stage.graph, options);
    }
    give_constants();
  }

  /// Parts of constants differ from rank to rank, and so do the ranks' own numbers.
  void give_constants() {
    for (const auto& [id, origin] : ranks.origins) {
      const Tensor& of = whole.graph.tensor(origin.whole);
      const Tensor& tensor = ranks.step.graph.tensor(id);
      if (!tensor.producer && !tensor.values && of.values)
        give(id, origin, known_numbers(*of.values));
    }
    for (const auto& [id, axis] : ranks.rank_numbers) {
      for (Stage& stage : stages) {
        const auto own = stage.own(id);
        for (std::size_t rank = 0; own && rank < places.size(); ++rank)
          stage.executions[rank].set(*own, Numbers{static_cast<double>(places[rank][axis])});
      }
    }
  }

  void give(TensorId id, const TensorOrigin& origin, std::span<const double> numbers) {
    const auto& shape = whole.graph.tensor(origin.whole).shape;
    for (Stage& stage : stages) {
      const auto own = stage.own(id);
      for (std::size_t rank = 0; own && rank < places.size(); ++rank)
        stage.executions[rank].set(*own,
                                   take_part(numbers, shape, origin, ranks.mesh, places[rank]));
    }
  }

  std::size_t axis_of(const Operator& op) const {
    const std::string name = op.attributes.text("mesh_axis", "");
    const auto found = std::ranges::find(ranks.mesh, name, &MeshAxis::name);
    internal_check(found != ranks.mesh.end(), fmt::format("'{}' is along no axis", op.name));
    return static_cast<std::size_t>(found - ranks.mesh.begin());
  }

  /// Every group of ranks along the axis exchanges what its members hold.
  void exchange(Stage& stage, const Operator& op) const {
    const std::size_t axis = axis_of(op);
    const auto& shape = stage.graph->tensor(*op.inputs[0]).shape;
    for (std::size_t first = 0; first < places.size(); ++first) {
      if (places[first][axis] != 0)
        continue;
      std::vector<std::size_t> group;
      std::vector<Numbers> held;
      for (std::size_t rank = 0; rank < places.size(); ++rank) {
        auto at = places[rank];
        at[axis] = 0;
        if (at != places[first])
          continue;
        group.push_back(rank);
        held.push_back(stage.executions[rank].get(*op.inputs[0]));
      }
      const std::vector<Numbers> given = exchanged_numbers(op, shape, held);
      for (std::size_t i = 0; i < group.size(); ++i)
        stage.executions[group[i]].set(*op.outputs[0], given[i]);
    }
  }

  /// Runs what a stage can: until it needs what another has not sent yet. True if it got on.
  bool advance_stage(std::size_t number) {
    Stage& stage = stages[number];
    const std::size_t first = stage.next;
    while (!stage.is_done()) {
      const Operator& op = stage.graph->operators()[stage.next];
      const bool ready =
          std::ranges::all_of(present(op.inputs), [&](TensorId id) { return arrived(stage, id); });
      if (!ready)
        break;
      if (is_collective(op)) {
        exchange(stage, op);
      } else {
        for (Execution& execution : stage.executions)
          execution.run_part(stage.next, stage.next + 1);
      }
      ++stage.next;
      for (const TensorId id : present(op.outputs))
        send(number, id);
    }
    return stage.next != first;
  }

  bool arrived(const Stage& stage, TensorId id) const {
    return std::ranges::none_of(
        waiting, [&](const auto& entry) { return entry.first == &stage && entry.second == id; });
  }

  void send(std::size_t number, TensorId id) {
    const Stage& from = stages[number];
    if (!from.part)
      return;
    for (const StageTransfer& transfer : from.part->sends) {
      if (transfer.tensor != id)
        continue;
      Stage& to = stages[static_cast<std::size_t>(transfer.peer)];
      const TensorId there = to.own(from.of(id)).value();
      for (std::size_t rank = 0; rank < places.size(); ++rank)
        to.executions[rank].set(there, from.executions[rank].get(id));
      std::erase(waiting, std::pair<const Stage*, TensorId>{&to, there});
    }
  }

  void check_numbers() const {
    ProblemList problems;
    for (const Stage& stage : stages) {
      for (std::size_t i = 0; i < stage.graph->tensors().size(); ++i) {
        const Tensor& tensor = stage.graph->tensors()[i];
        if (tensor.producer || tensor.consumers.empty() || !arrived(stage, TensorId(i)) ||
            stage.executions.front().has(TensorId(i)))
          continue;
        problems.add({stage.graph->origin, 0, 0, fmt::format("tensor '{}'", tensor.name)},
                     "has no numbers to execute with");
      }
    }
    problems.throw_if_any();
  }

  void run() {
    waiting.clear();
    for (Stage& stage : stages) {
      stage.next = 0;
      if (!stage.part)
        continue;
      for (const StageTransfer& transfer : stage.part->receives)
        waiting.emplace_back(&stage, transfer.tensor);
    }
    check_numbers();
    while (true) {
      bool moved = false;
      for (std::size_t i = 0; i < stages.size(); ++i)
        moved = advance_stage(i) || moved;
      if (std::ranges::all_of(stages, &Stage::is_done))
        return;
      internal_check(moved, "the stages of a pipeline wait for each other for ever");
    }
  }

  /// Where a whole tensor is: the stage that keeps it or made it last, and its own tensor there.
  struct Place {
    const Stage* stage = nullptr;
    TensorId own; ///< of the stage
    TensorId of;  ///< of the rank's step
    bool made = false;
  };
  std::optional<Place> held(TensorId of) const {
    std::optional<Place> best;
    for (const auto& [id, origin] : ranks.origins) {
      if (origin.whole != of)
        continue;
      for (const Stage& stage : stages) {
        const auto own = stage.own(id);
        if (!own || !stage.executions.front().has(*own))
          continue;
        const Place place{&stage, *own, id, stage.graph->tensor(*own).producer.has_value()};
        if (!best || is_better(place, *best))
          best = place;
      }
    }
    return best;
  }
  /// Results of collectives are complete; partial sums before them are not.
  bool is_better(const Place& place, const Place& than) const {
    if (place.made != than.made)
      return place.made;
    const auto& made = ranks.step.graph.tensor(place.of).producer;
    const auto& before = ranks.step.graph.tensor(than.of).producer;
    return made && before && *before < *made;
  }

  const TrainingGraph& whole;
  const RankStep& ranks;
  std::vector<Stage> stages;
  std::vector<std::vector<std::int64_t>> places; ///< by rank
  /// What stages have still to receive.
  std::vector<std::pair<const Stage*, TensorId>> waiting;
};

RankExecution::RankExecution(const TrainingGraph& whole, const RankStep& ranks,
                             const ExecuteOptions& options)
    : machine_(std::make_unique<Machine>(whole, ranks, std::span<const StageStep>{}, options)) {}
RankExecution::RankExecution(const TrainingGraph& whole, const RankStep& ranks,
                             std::span<const StageStep> stages, const ExecuteOptions& options)
    : machine_(std::make_unique<Machine>(whole, ranks, stages, options)) {}
RankExecution::~RankExecution() = default;
RankExecution::RankExecution(RankExecution&&) noexcept = default;
RankExecution& RankExecution::operator=(RankExecution&&) noexcept = default;

void RankExecution::set(TensorId whole, std::span<const double> numbers) {
  for (const auto& [id, origin] : machine_->ranks.origins) {
    if (origin.whole == whole && !machine_->ranks.step.graph.tensor(id).producer)
      machine_->give(id, origin, numbers);
  }
}

void RankExecution::run() {
  machine_->run();
}

std::vector<double> RankExecution::get(TensorId whole) const {
  const Tensor& tensor = machine_->whole.graph.tensor(whole);
  const auto place = machine_->held(whole);
  internal_check(place.has_value(), fmt::format("no rank has '{}'", tensor.name));
  Numbers numbers(static_cast<std::size_t>(element_count(tensor)));
  for (std::size_t rank = 0; rank < machine_->places.size(); ++rank)
    put_part(numbers, tensor.shape, place->stage->executions[rank].get(place->own),
             machine_->ranks.origins.at(place->of), machine_->ranks.mesh, machine_->places[rank]);
  return numbers;
}

bool RankExecution::ranks_agree(TensorId whole) const {
  const Numbers together = get(whole);
  const auto place = machine_->held(whole);
  const auto& shape = machine_->whole.graph.tensor(whole).shape;
  for (std::size_t rank = 0; rank < machine_->places.size(); ++rank) {
    if (place->stage->executions[rank].get(place->own) !=
        take_part(together, shape, machine_->ranks.origins.at(place->of), machine_->ranks.mesh,
                  machine_->places[rank]))
      return false;
  }
  return true;
}

void RankExecution::advance() {
  for (Stage& stage : machine_->stages) {
    for (Execution& execution : stage.executions)
      execution.advance();
  }
}

} // namespace monet::test
