// Repeats a pass for every micro-batch and adds up the gradients, before the update.
#include "training_graph/build/rebuild.hpp"
#include "training_graph/forward/forward.hpp"
#include "training_graph/forward/repeat_pass.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <map>

namespace monet {

namespace {

class Accumulator {
public:
  Accumulator(AccumulatedStep one, std::int64_t count, ElementType loss_type)
      : one_(std::move(one)), count_(count), loss_type_(loss_type), rewriter_(one_.graph),
        pass_(rewriter_) {}

  AccumulatedStep run() {
    name_first();
    find_once();
    for (const auto& [weight, gradient] : one_.gradients)
      sums_.try_emplace(gradient, gradient);
    for (const auto& [weight, parts] : one_.row_gradients)
      rows_.emplace_back(weight, std::vector<RowGradient>());
    made_.kept = one_.kept;
    for (std::int64_t micro = 1; micro <= count_; ++micro)
      append_micro_batch(micro);
    for (const auto& [weight, gradient] : one_.gradients)
      made_.gradients.emplace_back(weight, sums_.at(gradient));
    made_.row_gradients = std::move(rows_);
    made_.graph = rewriter_.release();
    return std::move(made_);
  }

private:
  const Graph& source() const { return one_.graph; }
  Graph& graph() { return rewriter_.graph(); }

  /// The first micro-batch has the tensors of the single one.
  void name_first() {
    if (one_.loss)
      rename(*one_.loss, ".micro_1");
    for (const auto& [weight, gradient] : one_.gradients)
      rename(gradient, ".micro_1");
    for (const auto& [weight, parts] : one_.row_gradients) {
      for (const RowGradient& part : parts) {
        rename(part.values, ".micro_1");
        rename(part.rows, ".micro_1");
      }
    }
  }

  void rename(TensorId id, std::string_view suffix) {
    const std::string name = graph().tensor(id).name;
    if (!name.ends_with(suffix))
      rewriter_.rename(id, name + std::string(suffix));
  }

  void find_once() {
    once_ = made_once(source());
    once_made_.resize(source().tensors().size());
    for (std::size_t i = 0; i < once_.size(); ++i) {
      for (const TensorId output : present(source().op(OpId(i)).outputs))
        once_made_[output.index()] = once_[i];
    }
  }

  TensorId add_copy(const Tensor& like, const std::string& name) {
    Tensor tensor = like;
    tensor.name = name;
    return rewriter_.add_tensor(std::move(tensor));
  }

  void begin(std::int64_t micro) {
    std::map<TensorId, TensorId> once;
    for (std::size_t i = 0; i < once_made_.size(); ++i) {
      if (once_made_[i])
        once.emplace(TensorId(i), TensorId(i)); // as the first micro-batch has it
    }
    pass_.begin(fmt::format(".micro_{}", micro), once);
    for (const TensorId id : one_.kept) {
      if (pass_.own(id))
        made_.kept.push_back(pass_.now(id));
    }
  }

  void append_micro_batch(std::int64_t micro) {
    if (micro > 1)
      begin(micro);
    if (one_.loss)
      losses_.emplace_back(pass_.now(*one_.loss));
    bool mean_made = false;
    for (std::size_t i = 0; i < source().operators().size(); ++i) {
      const Operator& op = source().operators()[i];
      if (micro > 1 && once_[i]) {
        pass_.skip(first_place_[i]);
        continue;
      }
      if (op.phase == Phase::backward && micro == count_ && !mean_made && one_.loss) {
        append_mean_loss();
        mean_made = true;
      }
      const OpId appended = pass_.append(op);
      if (micro == 1)
        first_place_.push_back(appended);
      for (const auto& output : op.outputs) {
        if (output && micro > 1)
          add_to_sum(*output, micro, appended);
      }
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) { // joined by the update
      for (const RowGradient& part : one_.row_gradients[i].second)
        rows_[i].second.push_back({pass_.now(part.values), pass_.now(part.rows)});
    }
    if (micro == 1)
      return;
    for (auto& [gradient, sum] : sums_) { // fed in rather than made
      if (!source().tensor(gradient).producer)
        add_to_sum(gradient, micro, std::nullopt);
    }
  }

  void add_to_sum(TensorId gradient, std::int64_t micro, std::optional<OpId> after) {
    const auto sum = sums_.find(gradient);
    if (sum == sums_.end())
      return;
    const Tensor& tensor = source().tensor(gradient);
    const std::string suffix = micro == count_ ? "" : fmt::format(".sum_{}", micro);
    const TensorId added = add_copy(tensor, tensor.name + suffix);
    // The added gradient is freed at once; the sum stays until the update.
    graph().tensor(pass_.now(gradient)).kind = TensorKind::gradient;
    rewriter_.add_operator({.name = fmt::format("{}.accumulate_{}", tensor.name, micro),
                            .op_type = ops::Add,
                            .inputs = {sum->second, pass_.now(gradient)},
                            .outputs = {added},
                            .phase = Phase::backward,
                            .forward_op = after ? graph().op(*after).forward_op : std::nullopt});
    sum->second = added;
  }

  void append_mean_loss() {
    made_.loss = rewriter_.add_tensor({.name = "loss", .type = loss_type_});
    rewriter_.add_operator({.name = "loss.Mean",
                            .op_type = ops::Mean,
                            .inputs = losses_,
                            .outputs = {*made_.loss},
                            .phase = Phase::loss});
  }

  AccumulatedStep one_;
  std::int64_t count_;
  ElementType loss_type_;
  GraphRewriter rewriter_; ///< of one_
  PassRepeater pass_;
  AccumulatedStep made_;
  std::vector<bool> once_;            ///< by operator of the single one: for all micro-batches
  std::vector<bool> once_made_;       ///< by tensor: made by such an operator
  std::vector<OpId> first_place_;     ///< by operator: in the first micro-batch
  std::map<TensorId, TensorId> sums_; ///< by gradient of the single micro-batch
  std::vector<std::optional<TensorId>> losses_;
  std::vector<std::pair<TensorId, std::vector<RowGradient>>> rows_;
};

} // namespace

AccumulatedStep accumulate_micro_batches(AccumulatedStep one, std::int64_t count,
                                         ElementType loss_type) {
  if (count == 1)
    return one;
  return Accumulator(std::move(one), count, loss_type).run();
}

} // namespace monet
