// Predicts the host memory of an execution before anything is allocated.
#include "execute/host_memory.hpp"

#include "base/shared/amounts.hpp"
#include "numerics/shared/exact_sum.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

namespace monet {

namespace {

/// The most that is held at once, and where.
struct MemoryNeed {
  std::int64_t bytes = 0;
  const Operator* at = nullptr; ///< null: before the first one
};

/// Walks the operators as Execution::run() does.
class HostMemory {
public:
  HostMemory(const Graph& graph, const ExecuteOptions& options)
      : graph_(graph),
        real_bytes_(options.arithmetic == Arithmetic::fp64 ? sizeof(double) : sizeof(float)),
        keeps_all_(options.keep_all), sums_exactly_(sums_exactly(options)),
        held_(graph.tensors().size()) {}

  MemoryNeed most() {
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      const Tensor& tensor = graph_.tensors()[i];
      if (tensor.producer || (tensor.consumers.empty() && !tensor.values))
        continue;
      hold(TensorId(i));
      largest = std::max(largest, bytes_of(TensorId(i)));
    }
    note(largest, nullptr); // numbers are made, then put into the tensor
    for (std::size_t i = 0; i < graph_.operators().size(); ++i)
      run(OpId(i));
    return most_;
  }

private:
  std::int64_t bytes_of(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    const auto each = is_floating(tensor.type) ? real_bytes_ : sizeof(std::int64_t);
    std::int64_t bytes = 0;
    return __builtin_mul_overflow(element_count(tensor), each, &bytes) ? kEndless : bytes;
  }
  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    return a > kEndless - b ? kEndless : a + b;
  }
  void hold(TensorId id) {
    if (!held_[id.index()])
      now_ = sum(now_, bytes_of(id));
    held_[id.index()] = true;
  }
  void note(std::int64_t more, const Operator* at) {
    if (sum(now_, more) > most_.bytes)
      most_ = {sum(now_, more), at};
  }
  /// Bytes of the operands that products and attention copy into another order.
  std::int64_t packed(const Operator& op) const {
    std::int64_t bytes = 0;
    for (const Access& access : op.nest.operands)
      bytes = sum(bytes, bytes_of(access.tensor));
    if (!sums_exactly_)
      return bytes;
    for (const TensorId output : present(op.outputs)) {
      std::int64_t sums = 0;
      if (__builtin_mul_overflow(element_count(graph_.tensor(output)), sizeof(ExactSum), &sums))
        return kEndless;
      bytes = sum(bytes, sums);
    }
    return bytes;
  }
  /// Whether a unit keeps an exact sum of unlimited width for every result.
  static bool sums_exactly(const ExecuteOptions& options) {
    const StepArithmetic& units = options.formats;
    return options.arithmetic == Arithmetic::formats &&
           std::ranges::any_of(
               std::array{&units.forward, &units.input_gradient, &units.weight_gradient},
               [](const auto* unit) { return *unit && !(*unit)->sum; });
  }
  /// Other kernels may gather the iterations of a group into rows (IterationGroup), of every
  /// operand one.
  std::int64_t gathered(const Operator& op) const {
    const LoopNest& nest = op.nest;
    if (nest.operands.empty())
      return 0;
    // A number, an integer, the element's address and its distance from the first one.
    std::int64_t bytes =
        static_cast<std::int64_t>((real_bytes_ + 3 * sizeof(std::int64_t)) * nest.operands.size());
    bool gathers = false;
    for (std::size_t d = 0; d < nest.dims.size(); ++d) {
      if (nest.dims[d].size <= 1 || (!nest.dims[d].coupled && moves(nest.operands[0], d)))
        continue;
      gathers = true;
      if (__builtin_mul_overflow(bytes, nest.dims[d].size, &bytes))
        return kEndless;
    }
    return gathers ? bytes : 0;
  }
  static bool moves(const Access& access, std::size_t dim) {
    for (const AxisExpr& axis : access.axes) {
      for (const AffineTerm& term : axis.terms) {
        if (term.dim == dim)
          return true;
      }
    }
    return false;
  }
  void run(OpId id) {
    const Operator& op = graph_.op(id);
    for (const TensorId output : present(op.outputs))
      hold(output);
    note(op.nest.compute == ComputeKind::mac ? packed(op) : gathered(op), &op);
    for (const TensorId freed : keeps_all_ ? std::vector<TensorId>{} : freed_after(graph_, id)) {
      if (held_[freed.index()] && now_ != kEndless)
        now_ -= bytes_of(freed);
      held_[freed.index()] = false;
    }
  }

  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();
  const Graph& graph_;
  std::size_t real_bytes_;
  bool keeps_all_;
  bool sums_exactly_;
  std::vector<bool> held_; ///< per tensor
  std::int64_t now_ = 0;
  MemoryNeed most_;
};

} // namespace

std::vector<TensorId> freed_after(const Graph& graph, OpId op) {
  std::vector<TensorId> freed;
  for (const TensorId id : present(graph.op(op).inputs)) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::parameter_gradient || !tensor.producer || tensor.alias_of)
      continue;
    const bool is_output = std::ranges::find(graph.outputs, id) != graph.outputs.end();
    if (tensor.consumers.back() == op && !is_output)
      freed.push_back(id);
  }
  return freed;
}

std::int64_t execution_bytes(const Graph& graph, const ExecuteOptions& options) {
  return HostMemory(graph, options).most().bytes;
}

void check_memory(const Graph& graph, const ExecuteOptions& options) {
  const MemoryNeed need = HostMemory(graph, options).most();
  if (need.bytes <= options.memory_limit_bytes)
    return;
  throw InfeasibleError(
      fmt::format("executing {} needs {}{}, but the memory limit is {}",
                  graph.name.empty() ? graph.origin : graph.name, both_bytes(need.bytes),
                  need.at == nullptr ? "" : fmt::format(" at '{}'", need.at->name),
                  both_bytes(options.memory_limit_bytes)));
}

} // namespace monet
