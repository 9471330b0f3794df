// What a kernel sees of the operator it executes: its tensors, whole or through the loop nest.
#pragma once

#include "execute/walk/operand.hpp"
#include "execute/walk/tensor_store.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/numerics/mac.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Iterations that share coupled or reduced loops, gathered into rows. Inputs and outputs are
/// counted as the operator's. A row has size() elements; an output that does not depend on the
/// inner loops has one.
template <class Real>
class IterationGroup {
public:
  std::size_t size() const { return size_; }
  /// Integers as real numbers, too.
  std::span<const Real> in(std::size_t input) const { return inputs_[input].real; }
  std::span<const std::int64_t> integers(std::size_t input) const { return inputs_[input].whole; }
  /// Element of the tensor that each entry of in() came from; -1 outside of it (padding).
  std::span<const std::int64_t> address(std::size_t input) {
    inputs_[input].find_addresses();
    return inputs_[input].address;
  }
  /// A kernel writes one of these two, whichever the tensor holds: integers are cut off.
  std::span<Real> out(std::size_t output) { return outputs_[output].real; }
  std::span<std::int64_t> out_integers(std::size_t output) {
    outputs_[output].is_whole = true;
    return outputs_[output].whole;
  }

private:
  template <class>
  friend class KernelContext;
  struct Row {
    std::vector<Real> real;
    std::vector<std::int64_t> whole;
    std::vector<std::int64_t> address;
    std::optional<OperandMap> map;
    std::vector<std::int64_t> table; ///< offsets of the inner iterations, if never outside
    std::int64_t first = 0;          ///< element that they are offsets from
    std::size_t run = 1;             ///< offsets that follow each other, one after another
    bool constant = false;           ///< all offsets are 0
    TensorNumbers<Real>* numbers = nullptr;
    std::int64_t count = 0; ///< of the tensor's numbers
    bool integral = false;  ///< the tensor holds integers
    bool summed = false;    ///< other groups add into the same elements
    bool is_whole = false;  ///< the kernel writes `whole`

    /// Where the table says them: find_elements() has the others.
    void find_addresses() {
      const auto offsets =
          std::span<const std::int64_t>(table).first(table.empty() ? 0 : address.size());
      for (std::size_t i = 0; i < offsets.size(); ++i)
        address[i] = first + offsets[i];
    }
  };
  std::size_t size_ = 0;
  std::vector<Row> inputs_;
  std::vector<Row> outputs_;
};

/// Iterations that for_each_block() passes at a time: their values stay in the nearest cache.
inline constexpr std::size_t kIterationBlock = 256;

struct GradientRounding;

/// What every operator of a run is executed with.
struct KernelSettings {
  std::uint64_t seed = 0;
  int jobs = 1;
  const StepArithmetic* formats = nullptr;
  Instructions instructions = Instructions::best;
  GradientRounding* gradients = nullptr; ///< what converters of operands do to them
};

template <class Real>
class KernelContext {
public:
  using Shape = std::vector<std::int64_t>;
  using Group = IterationGroup<Real>;

  KernelContext(TensorStore<Real>& store, const Operator& op, const KernelSettings& settings)
      : store_(store), op_(op), settings_(settings), index_(index_operands(op)) {}

  const Graph& graph() const { return store_.graph(); }
  const Operator& op() const { return op_; }
  const Attributes& attributes() const { return op_.attributes; }
  std::uint64_t seed() const { return settings_.seed; }
  int jobs() const { return settings_.jobs; }
  Instructions instructions() const { return settings_.instructions; }
  GradientRounding* gradients() const { return settings_.gradients; }
  /// What results are rounded by; null where element types do not round.
  const StepArithmetic* formats() const { return settings_.formats; }

  // --- whole tensors, row-major ---
  bool has_input(std::size_t i) const { return i < op_.inputs.size() && op_.inputs[i]; }
  bool has_output(std::size_t i) const { return i < op_.outputs.size() && op_.outputs[i]; }
  const Shape& input_shape(std::size_t i) const { return graph().tensor(*op_.inputs[i]).shape; }
  const Shape& output_shape(std::size_t i) const { return graph().tensor(*op_.outputs[i]).shape; }
  bool is_real_input(std::size_t i) const {
    return is_floating(graph().tensor(*op_.inputs[i]).type);
  }
  const std::vector<Real>& input(std::size_t i) const { return store_[*op_.inputs[i]].real; }
  const std::vector<std::int64_t>& integers(std::size_t i) const {
    return store_[*op_.inputs[i]].whole;
  }
  /// Zeros before the kernel runs.
  std::vector<Real>& output(std::size_t i) { return store_[*op_.outputs[i]].real; }
  std::vector<std::int64_t>& output_integers(std::size_t i) {
    return store_[*op_.outputs[i]].whole;
  }
  const std::vector<Real>& tensor(TensorId id) const { return store_[id].real; }
  /// A scalar input (fallback when left out), of either kind.
  double scalar(std::size_t i, double fallback) const;

  // --- through the loop nest, whose iterations follow each other with the last loop fastest ---
  const OperandIndex& operand_index() const { return index_; }
  OperandMap map_of(std::size_t operand) const;
  /// f(in, out): the operand values of one iteration by input and output index (0 for what the nest
  /// does not touch or for padding). Results are stored, or summed where the loops reduce. With
  /// extents, f sees so many whatever the operator has: 0 for what it lacks, and such results are
  /// dropped. So nobody has to look at every iteration whether they are there.
  template <std::size_t kIn = std::dynamic_extent, std::size_t kOut = std::dynamic_extent, class F>
  void for_each_iteration(F f);
  /// f(in, out, count): the same for `count` iterations at a time, at most kIterationBlock:
  /// pointers to their values, one for each input and output.
  template <std::size_t kIn = std::dynamic_extent, std::size_t kOut = std::dynamic_extent, class F>
  void for_each_block(F f);
  /// f(group): the loops of a group are those that are coupled or that the first output lacks.
  template <class F>
  void for_each_group(F f);
  template <class F>
  void for_each_group(const std::vector<bool>& inner, F f);

private:
  /// An operand of the nest. Without bounds, all of its elements are known to be inside.
  struct Slot {
    std::size_t place = 0; ///< among the operator's inputs or outputs
    OperandMap map;
    TensorNumbers<Real>* numbers = nullptr;
    Real* real = nullptr; ///< null: the tensor holds integers
    std::int64_t* whole = nullptr;
    std::int64_t count = 0; ///< of the tensor's numbers
    bool summed = false;
    std::int64_t begin = 0;  ///< element at the start of the last loop
    std::int64_t stride = 0; ///< along the last loop
    std::vector<Real> block; ///< values that do not lie in the tensor one after another

    bool is_plain() const { return real != nullptr && map.bounds.empty() && stride == 1; }
  };
  /// Iterations [first, first + count) of the last loop.
  struct Block {
    std::int64_t first = 0;
    std::size_t count = 0;
  };
  static void join_loops(std::vector<std::int64_t>& sizes, std::vector<Slot>& in,
                         std::vector<Slot>& out);
  static void begin_run(std::vector<Slot>& slots, std::span<const std::int64_t> point);
  static const Real* load(Slot& slot, const Block& block, std::span<const std::int64_t> point);
  static void store(Slot& slot, const Block& block, std::span<const std::int64_t> point);
  std::vector<std::int64_t> inner_offsets(const OperandMap& map, const std::vector<bool>& inner,
                                          std::size_t length) const;
  static void find_elements(typename Group::Row& row, std::vector<std::int64_t>& point,
                            std::span<const std::size_t> inner,
                            std::span<const std::int64_t> inner_sizes);
  static void find_run(typename Group::Row& row);
  template <class Number>
  static void take(const typename Group::Row& row, const Number* from, std::span<Number> to);
  std::vector<Slot> slots(bool outputs) const;
  std::vector<std::int64_t> sizes() const;
  bool depends_on(const OperandMap& map, const std::vector<bool>& loops) const;
  std::vector<bool> inner_loops() const;
  Group make_group(const std::vector<bool>& inner) const;
  void gather(Group& group, std::vector<std::int64_t>& point, std::span<const std::size_t> inner,
              std::span<const std::int64_t> inner_sizes) const;
  void scatter(Group& group, std::vector<std::int64_t>& point, std::span<const std::size_t> inner,
               std::span<const std::int64_t> inner_sizes) const;

  TensorStore<Real>& store_;
  const Operator& op_;
  KernelSettings settings_;
  OperandIndex index_;
};

} // namespace monet

#include "execute/walk/context_walks.hpp"
