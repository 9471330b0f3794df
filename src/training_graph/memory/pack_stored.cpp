// Packs stored masks and indices into their smallest form.
#include "base/shared/checked.hpp"
#include "training_graph/build/rebuild.hpp"
#include "training_graph/memory/storage.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

namespace monet {

namespace {

/// A gradient that follows from one bit an element.
struct TwoValued {
  std::string_view activation;
  std::string_view gradient;
};
constexpr std::array kTwoValued{
    TwoValued{ops::Clip, ops::ClipGrad}, TwoValued{ops::HardSigmoid, ops::HardSigmoidGrad},
    TwoValued{ops::LeakyRelu, ops::LeakyReluGrad}, TwoValued{ops::Relu, ops::ReluGrad}};

/// Storages that the backward part reads, and the operators that do.
using Readers = std::vector<std::vector<OpId>>;

Readers backward_readers(const Graph& graph) {
  Readers readers(graph.tensors().size());
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.op(OpId(i));
    if (op.phase != Phase::backward)
      continue;
    for (const TensorId input : present(op.inputs))
      readers[storage_root(graph, input).index()].emplace_back(i);
  }
  return readers;
}

bool is_made_forward(const Graph& graph, TensorId id) {
  const auto producer = graph.tensor(id).producer;
  return producer && graph.op(*producer).phase == Phase::forward;
}

/// The gradient of a two-valued activation that reads the activation's input or output.
bool can_read_mask(const Graph& graph, const Operator& gradient) {
  if (!gradient.forward_op || gradient.domain != kMonetDomain || gradient.inputs.size() < 2 ||
      !gradient.inputs[0] || !gradient.inputs[1] || gradient.outputs.size() != 1)
    return false; // bounds and slopes that are trained need more than the mask
  const Operator& activation = graph.op(*gradient.forward_op);
  const bool listed = std::ranges::any_of(kTwoValued, [&](const TwoValued& row) {
    return row.activation == activation.op_type && row.gradient == gradient.op_type;
  });
  return listed && activation.domain.empty() && activation.outputs.size() == 1 &&
         (gradient.inputs[1] == activation.inputs[0] ||
          gradient.inputs[1] == activation.outputs[0]);
}

void set_slopes(const Operator& activation, Operator& gradient) {
  Attributes attributes;
  if (activation.op_type == ops::LeakyRelu)
    attributes.set("outside", activation.attributes.number("alpha", 0.01));
  if (activation.op_type == ops::HardSigmoid)
    attributes.set("inside", activation.attributes.number("alpha", 0.2));
  gradient.attributes = std::move(attributes);
}

class Packing {
public:
  explicit Packing(Graph& graph) : graph_(graph) {
    views_.resize(graph.tensors().size());
    for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
      names_.insert(graph.tensors()[t].name);
      views_[storage_root(graph, TensorId(t)).index()].emplace_back(t);
    }
  }

  void run() {
    const Readers readers = backward_readers(graph_);
    for (std::size_t t = 0; t < readers.size(); ++t) {
      if (readers[t].empty() || !is_made_forward(graph_, TensorId(t)))
        continue;
      shrink(TensorId(t));
      const bool masks = std::ranges::all_of(
          readers[t], [&](OpId reader) { return can_read_mask(graph_, graph_.op(reader)); });
      if (!masks)
        continue;
      for (const OpId reader : readers[t])
        write_mask(reader);
    }
  }

private:
  /// A narrower element type for booleans and indices.
  void shrink(TensorId id) {
    Tensor& tensor = graph_.tensor(id);
    const Operator& producer = graph_.op(*tensor.producer);
    if (tensor.type == ElementType::boolean) {
      for (const TensorId view : views_[id.index()])
        graph_.tensor(view).type = ElementType::bit;
    } else if (producer.op_type == ops::MaxPool && producer.outputs.size() > 1 &&
               producer.outputs[1] == id && producer.attributes.integer("window_indices", 0) != 0) {
      const std::int64_t places = checked_product(producer.attributes.integers("kernel_shape"));
      if (places <= 256)
        tensor.type = ElementType::uint8;
      else if (places <= 65536)
        tensor.type = ElementType::uint16;
    }
  }

  void write_mask(OpId reader) {
    const OpId writer = *graph_.op(reader).forward_op;
    const Tensor& result = graph_.tensor(*graph_.op(writer).outputs[0]);
    const TensorId id = graph_.add_tensor({.name = unique_name(names_, result.name + ".mask"),
                                           .shape = result.shape,
                                           .type = ElementType::bit});
    graph_.tensor(id).producer = writer;

    Operator& gradient = graph_.op(reader);
    const std::int64_t strict = gradient.attributes.integer("strict", 0);
    set_slopes(graph_.op(writer), gradient);
    gradient.op_type = ops::MaskGrad;
    const auto inputs = gradient.inputs;
    gradient.inputs.resize(2);
    for (std::size_t i = 2; i < inputs.size(); ++i) {
      if (inputs[i])
        std::erase(graph_.tensor(*inputs[i]).consumers, reader);
    }
    graph_.replace_input(reader, 1, id);

    Operator& activation = graph_.op(writer);
    activation.domain = kMonetDomain;
    activation.outputs.emplace_back(id);
    if (strict != 0)
      activation.attributes.set("strict", strict);
    build_nest(graph_, writer);
    build_nest(graph_, reader);
  }

  Graph& graph_;
  std::unordered_set<std::string> names_;
  std::vector<std::vector<TensorId>> views_; ///< per storage, itself included
};

} // namespace

void pack_stored(Graph& graph) {
  Packing(graph).run();
}

} // namespace monet
