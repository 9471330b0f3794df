// Finds the products of layers that run in fp8; scaled_casts.cpp inserts their casts.
#include "training_graph/build/rebuild.hpp"
#include "training_graph/build/scaled_casts.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace monet {

namespace {

/// Suffixes that adapters and sparse updates add to the name of a layer's weight, by part.
constexpr std::array<std::string_view, 4> kParts{".lora_A", ".lora_B", ".trained", ".frozen"};

std::string layer_name(const std::string& weight) {
  for (const std::string_view part : kParts) {
    if (weight.ends_with(part))
      return weight.substr(0, weight.size() - part.size());
  }
  return weight;
}

class LayerProducts {
public:
  explicit LayerProducts(const Graph& network)
      : network_(network), data_(network.tensors().size()), trained_(network.tensors().size()) {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const TensorKind kind = network.tensors()[i].kind;
      data_[i] = kind == TensorKind::input || kind == TensorKind::label;
      trained_[i] = kind == TensorKind::parameter;
    }
    for (const Operator& op : network.operators())
      visit(op);
  }

  std::vector<LayerProduct> find() const {
    std::vector<LayerProduct> found;
    for (std::size_t i = 0; i < network_.operators().size(); ++i) {
      const Operator& op = network_.op(OpId(i));
      const bool listed = op.op_type.is_one_of(
          {ops::Conv, ops::ConvTranspose, ops::Einsum, ops::Gemm, ops::MatMul});
      if (!listed || !op.domain.empty() || op.nest.compute != ComputeKind::mac ||
          op.inputs.size() < 2 || !op.inputs[0] || !op.inputs[1])
        continue;
      for (const std::size_t weight : {1U, 0U}) {
        if (!is_weight(*op.inputs[weight]) || !is_data(*op.inputs[1 - weight]))
          continue;
        found.push_back({OpId(i), weight, parameters_of(*op.inputs[weight])});
        break;
      }
    }
    return found;
  }

private:
  void visit(const Operator& op) {
    const auto any = [&](const std::vector<bool>& property) {
      return std::ranges::any_of(present(op.inputs),
                                 [&](TensorId id) { return property[id.index()]; });
    };
    const bool data = any(data_);
    const bool trained = any(trained_);
    for (const TensorId id : present(op.outputs)) {
      data_[id.index()] = data;
      trained_[id.index()] = trained;
    }
  }

  bool is_real(TensorId id) const { return is_floating(network_.tensor(id).type); }
  bool is_weight(TensorId id) const {
    return is_real(id) && trained_[id.index()] && !data_[id.index()];
  }
  bool is_data(TensorId id) const { return is_real(id) && data_[id.index()]; }

  std::vector<TensorId> parameters_of(TensorId weight) const {
    std::vector<TensorId> parameters;
    std::set<TensorId> seen{weight};
    std::vector<TensorId> open{weight};
    while (!open.empty()) {
      const TensorId id = open.back();
      const Tensor& tensor = network_.tensor(id);
      open.pop_back();
      if (tensor.kind == TensorKind::parameter)
        parameters.push_back(id);
      if (!tensor.producer)
        continue;
      for (const TensorId input : present(network_.op(*tensor.producer).inputs)) {
        if (seen.insert(input).second)
          open.push_back(input);
      }
    }
    return parameters;
  }

  const Graph& network_;
  std::vector<bool> data_;    ///< depends on what is fed in
  std::vector<bool> trained_; ///< depends on a parameter
};

/// Blocks lie along the summed axis of X [..., K], and W is a matrix.
bool fits_blocks(const Graph& network, const LayerProduct& product) {
  const Operator& op = network.op(product.op);
  const auto rank = [&](std::size_t i) { return network.tensor(*op.inputs[i]).shape.size(); };
  const bool matrices = op.op_type == ops::MatMul ||
                        (op.op_type == ops::Gemm && op.attributes.integer("transA", 0) == 0);
  return matrices && product.weight == 1 && rank(0) >= 2 && rank(1) == 2;
}

} // namespace

std::vector<LayerProduct> chosen_products(const Graph& network, const ScaledProducts& options) {
  std::vector<LayerProduct> products = LayerProducts(network).find();
  if (options.scaling == ScaledProducts::Scaling::block)
    std::erase_if(products, [&](const auto& product) { return !fits_blocks(network, product); });
  const auto name_of = [&](TensorId parameter) {
    return layer_name(network.tensor(parameter).name);
  };
  std::string first;
  std::string last;
  if (!products.empty()) {
    first = name_of(products.front().parameters.front());
    last = name_of(products.back().parameters.front());
  }
  Patterns patterns(options.layers);
  std::erase_if(products, [&](const LayerProduct& product) {
    bool matches = options.layers.empty();
    for (const TensorId parameter : product.parameters)
      matches = patterns.match(name_of(parameter)) || matches;
    const std::string name = name_of(product.parameters.front());
    return !matches || (options.keep_first_and_last && (name == first || name == last));
  });
  ProblemList problems;
  patterns.report(network, "no weight of a product matches the pattern '{}' of 'products'",
                  problems);
  problems.throw_if_any();
  if (products.empty())
    throw InputError({network.origin, 0, 0, ""}, "there is no product of a layer to compute in fp8",
                     "'products' under 'precision' chooses products with a weight");
  return products;
}

} // namespace monet
