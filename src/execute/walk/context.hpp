// Access of a kernel to the operator it executes: its tensors, whole or through the loop nest.
#pragma once

#include "execute/walk/map_block.hpp"
#include "execute/walk/operand.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/numerics/mac.hpp"
#include "monet/workload/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace monet {

/// Refers to a function of these arguments, which must outlive the call that it is passed to: walks
/// are compiled once, whatever they call.
template <class... Arguments>
class FunctionRef {
public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(
      F&& function) // NOLINT(google-explicit-constructor): lambdas are passed as they are
      : object_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* object, Arguments... arguments) {
          (*static_cast<std::remove_reference_t<F>*>(object))(arguments...);
        }) {}

  void operator()(Arguments... arguments) const { call_(object_, arguments...); }

private:
  void* object_;
  void (*call_)(void*, Arguments...);
};

template <class Real>
struct TensorNumbers {
  std::vector<Real> real;
  Integers whole;
  bool present = false;
};

/// Numbers of every tensor of a graph, reals separate from integers.
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

/// One operand of a group of iterations.
template <class Real>
struct GroupRow {
  std::vector<Real> real;
  Integers whole;
  Integers address;
  std::optional<OperandMap> map;
  Integers table;         ///< offsets of the inner iterations, if never outside
  std::int64_t first = 0; ///< element that they are offsets from
  std::size_t run = 1;    ///< offsets that follow each other, one after another
  bool constant = false;  ///< all offsets are 0
  TensorNumbers<Real>* numbers = nullptr;
  std::int64_t count = 0; ///< of the tensor's numbers
  bool integral = false;  ///< the tensor holds integers
  bool summed = false;    ///< other groups add into the same elements
  bool is_whole = false;  ///< the kernel writes `whole`

  /// Computes the addresses of a row that has a table; others have them already.
  void find_addresses();
};

/// Iterations that share coupled or reduced loops, gathered into rows. Inputs and outputs are
/// counted as the operator's. A row has size() elements; an output that does not depend on the
/// inner loops has one.
template <class Real>
class IterationGroup {
public:
  IterationGroup(std::size_t size, std::vector<GroupRow<Real>>& inputs,
                 std::vector<GroupRow<Real>>& outputs)
      : size_(size), inputs_(inputs), outputs_(outputs) {}

  std::size_t size() const { return size_; }
  /// Integers as real numbers, too.
  std::span<const Real> in(std::size_t input) const;
  std::span<const std::int64_t> integers(std::size_t input) const;
  /// Element of the tensor that each entry of in() came from; -1 outside of it (padding).
  std::span<const std::int64_t> address(std::size_t input);
  /// A kernel writes one of these two, whichever the tensor holds: integers are cut off.
  std::span<Real> out(std::size_t output);
  std::span<std::int64_t> out_integers(std::size_t output);

private:
  std::size_t size_;
  std::vector<GroupRow<Real>>& inputs_;
  std::vector<GroupRow<Real>>& outputs_;
};

struct GradientRounding;

/// Settings for the execution of every operator of a run.
struct KernelSettings {
  std::uint64_t seed = 0;
  int jobs = 1;
  const StepArithmetic* formats = nullptr;
  Instructions instructions = Instructions::best;
  GradientRounding* gradients = nullptr; ///< counts of gradients rounded by operand converters
};

/// An operand of the nest that can be walked.
template <class Real>
struct WalkedOperand {
  std::size_t place = 0; ///< among the operator's inputs or outputs
  OperandMap map;
  TensorNumbers<Real>* numbers = nullptr;
  std::int64_t count = 0; ///< of the tensor's numbers
  bool integral = false;  ///< the tensor holds integers
  bool accumulates = false;
};

/// The elements of a tensor, whatever their type.
struct ElementArray {
  std::byte* data = nullptr;
  std::size_t count = 0;
  std::size_t size = 0; ///< bytes of an element: 4 or 8
  bool is_real = false;
};

/// Part of a kernel's context that does not depend on the precision of real numbers.
class OperatorContext {
public:
  using Shape = Integers;

  const Graph& graph() const { return graph_; }
  const Operator& op() const { return op_; }
  const Attributes& attributes() const { return op_.attributes; }
  std::uint64_t seed() const { return settings_.seed; }
  int jobs() const { return settings_.jobs; }
  Instructions instructions() const { return settings_.instructions; }
  GradientRounding* gradients() const { return settings_.gradients; }
  /// Arithmetic that rounds results; null if element types do not round.
  const StepArithmetic* formats() const { return settings_.formats; }

  bool has_input(std::size_t i) const;
  bool has_output(std::size_t i) const;
  const Shape& input_shape(std::size_t i) const;
  const Shape& output_shape(std::size_t i) const;
  bool is_real_input(std::size_t i) const;
  const Integers& integers(std::size_t i) const { return whole(id_of_input(i)); }
  Integers& output_integers(std::size_t i) { return whole(id_of_output(i)); }
  ElementArray input_elements(std::size_t i) const { return elements(id_of_input(i)); }
  ElementArray output_elements(std::size_t i) { return elements(id_of_output(i)); }
  /// One number of a tensor of either kind.
  virtual double number(TensorId tensor, std::size_t element) const = 0;
  double input_number(std::size_t i, std::size_t element) const {
    return number(id_of_input(i), element);
  }
  /// A scalar input (fallback when left out), of either kind.
  double scalar(std::size_t i, double fallback) const {
    return has_input(i) ? input_number(i, 0) : fallback;
  }

  const OperandIndex& operand_index() const { return index_; }
  OperandMap map_of(std::size_t operand) const;
  OperandMap map_of_input(std::size_t i) const { return map_of(index_.inputs.at(i).value()); }
  OperandMap map_of_output(std::size_t i) const { return map_of(index_.outputs.at(i).value()); }

protected:
  OperatorContext(const Graph& graph, const Operator& op, const KernelSettings& settings)
      : graph_(graph), op_(op), settings_(settings), index_(index_operands(op)) {}
  ~OperatorContext() = default;
  virtual Integers& whole(TensorId tensor) const = 0;
  virtual ElementArray elements(TensorId tensor) const = 0;
  TensorId id_of_input(std::size_t i) const;
  TensorId id_of_output(std::size_t i) const;

  const Graph& graph_;
  const Operator& op_;
  KernelSettings settings_;
  OperandIndex index_;
};

template <class Real>
class KernelContext final : public OperatorContext {
public:
  using Group = IterationGroup<Real>;

  KernelContext(TensorStore<Real>& store, const Operator& op, const KernelSettings& settings)
      : OperatorContext(store.graph(), op, settings), store_(store) {}

  // --- whole tensors, row-major ---
  const std::vector<Real>& input(std::size_t i) const { return tensor(id_of_input(i)); }
  /// Zeros before the kernel runs.
  std::vector<Real>& output(std::size_t i) { return store_[id_of_output(i)].real; }
  const std::vector<Real>& tensor(TensorId id) const { return store_[id].real; }
  double number(TensorId tensor, std::size_t element) const override;

  // --- through the loop nest, whose iterations follow each other with the last loop fastest ---
  /// f(block) for all iterations, at most kIterationBlock at a time. Blocks have at least that many
  /// inputs and outputs: an input that the nest does not touch is 0, as is padding, and an output
  /// that the operator lacks is dropped. Results are stored, or summed where the loops reduce.
  void for_each_block(FunctionRef<const IterationBlock<Real>&> f, std::size_t inputs = 0,
                      std::size_t outputs = 0);
  /// f(in, out) for every iteration: the values of all inputs and outputs of the operator.
  template <class F>
  void for_each_iteration(F f);
  /// map_block() of all iterations.
  template <class F>
  void map(const F& f);
  /// f(group): the loops of a group are those that are coupled or that the first output lacks.
  void for_each_group(FunctionRef<Group&> f);
  void for_each_group(const std::vector<bool>& inner, FunctionRef<Group&> f);

private:
  Integers& whole(TensorId tensor) const override;
  ElementArray elements(TensorId tensor) const override;
  std::vector<WalkedOperand<Real>> walked_operands(bool outputs) const;

  TensorStore<Real>& store_;
};

template <class Real>
template <class F>
void KernelContext<Real>::for_each_iteration(F f) {
  std::vector<Real> values, results;
  for_each_block([&](const IterationBlock<Real>& block) {
    values.resize(block.in.size());
    results.resize(block.out.size());
    for (std::size_t i = 0; i < block.count; ++i) {
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = block.in[k][i];
      f(std::span<const Real>(values), std::span<Real>(results));
      for (std::size_t k = 0; k < results.size(); ++k)
        block.out[k][i] = results[k];
    }
  });
}

template <class Real>
template <class F>
void KernelContext<Real>::map(const F& f) {
  constexpr std::size_t kInputs = arity_of<Real, F, Real>();
  for_each_block([&f](const IterationBlock<Real>& block) { map_block(f, block); }, kInputs,
                 results_of<Real, F>(std::make_index_sequence<kInputs>()));
}

} // namespace monet
