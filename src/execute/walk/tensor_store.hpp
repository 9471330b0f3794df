// The numbers of every tensor of a graph, reals and integers apart.
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <vector>

namespace monet {

template <class Real>
struct TensorNumbers {
  std::vector<Real> real;
  std::vector<std::int64_t> whole;
  bool present = false;
};

template <class Real>
class TensorStore {
public:
  explicit TensorStore(const Graph& graph) : graph_(&graph), tensors_(graph.tensors().size()) {}

  const Graph& graph() const { return *graph_; }
  const TensorNumbers<Real>& operator[](TensorId id) const { return tensors_[id.index()]; }
  TensorNumbers<Real>& operator[](TensorId id) { return tensors_[id.index()]; }

  /// Zeros for every element.
  TensorNumbers<Real>& allocate(TensorId id) {
    const Tensor& tensor = graph_->tensor(id);
    TensorNumbers<Real>& numbers = tensors_[id.index()];
    const auto count = static_cast<std::size_t>(element_count(tensor));
    if (is_floating(tensor.type)) {
      numbers.real.assign(count, Real{0});
    } else {
      numbers.whole.assign(count, 0);
    }
    numbers.present = true;
    return numbers;
  }
  void free(TensorId id) { tensors_[id.index()] = {}; }

private:
  const Graph* graph_;
  std::vector<TensorNumbers<Real>> tensors_;
};

} // namespace monet
