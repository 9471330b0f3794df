// A problem seen by the mapper: how each loop touches each operand, and how many elements a set of
// loops touches.
//
// A loop is irrelevant to an operand whose axes lack it, relevant when it is alone on its axis, and
// partial when it shares an axis (2*OX + FX): then neighbouring iterations overlap. Outputs may
// have shared axes too (scatter form).
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace monet::core_cost_detail {

inline constexpr std::size_t kMaxDims = 24;    ///< loops of a problem
inline constexpr std::size_t kMaxOperands = 4; ///< operands of a problem for an array core
inline constexpr std::size_t kMaxAxes = 6; ///< axes of one operand that are shared by several loops
inline constexpr std::size_t kMaxTerms = 8; ///< loops on one shared axis
inline constexpr std::int64_t kMaxIterations = std::int64_t{1} << 50;
inline constexpr double kRounding = 1e-9; ///< of factors that are quotients

/// The operand's whole region as it is stored.
std::int64_t region_bits(const ProblemOperand& operand);

/// One loop of a mapping inside the search. `dim` indexes CoreProblem::dims.
struct Loop {
  std::uint32_t dim = 0;
  double size = 1;
};

enum class Relevance : std::uint8_t { irrelevant, relevant, partial };

/// sum(coefficient * loop) over two loops or more, clipped to `extent`.
struct SharedAxis {
  struct Step {
    std::int64_t stride_so_far = 1; ///< of the terms before, over the common divisor with this one
    std::int64_t stride = 1;        ///< of this term, over the same divisor
  };
  std::size_t terms = 0;
  std::array<Step, kMaxTerms> steps{};
  std::int64_t extent = 0;
  bool count_gaps = false; ///< see ModelChoices::gaps_not_fetched

  /// Distinct indices inside the extent when term t runs over counts[t] values (truncated to whole
  /// numbers).
  double count(const double* counts) const;
};

struct OperandModel {
  bool output = false;
  bool offchip = false;
  MemoryOperand memory = MemoryOperand::I1;
  /// An additional input of one memory operand (a bias in the weights' memory), which lies in the
  /// top memory only.
  bool aside = false;
  /// Such an input that no summing loop touches: read where sums start, not while they grow.
  bool addend = false;
  std::int64_t bits = 0;
  std::int64_t partial_bits = 0; ///< equal to bits for inputs
  double fixed = 1; ///< elements touched whatever the loops do (opaque and data-dependent axes)
  std::array<Relevance, kMaxDims> relevance{};
  std::array<std::uint8_t, kMaxDims> relevant{}; ///< the relevant loops, in the order of the axes
  std::size_t relevant_count = 0;
  std::size_t axes = 0;
  std::array<SharedAxis, kMaxAxes> axis{};
  /// Position of a partial loop: its axis, and the term on it. A loop on two axes keeps the first.
  std::array<std::uint8_t, kMaxDims> axis_of{};
  std::array<std::uint8_t, kMaxDims> term_of{};
};

struct NestModel {
  ModelChoices choices;
  bool even_allocation = false; ///< see CoreCostOptions
  std::vector<LoopDim> dims;
  std::vector<OperandModel> operands; ///< in the problem's order: the output first
  std::size_t output = 0;
  std::int64_t iterations = 1;
  std::uint32_t across_blocks = 0; ///< as CoreProblem's

  /// One multiplier may add up products of the loop in a cycle.
  bool is_summed_at_once(std::size_t dim) const {
    return operands[output].relevance[dim] == Relevance::irrelevant &&
           (across_blocks >> dim & 1U) == 0;
  }
  /// Index of the loop called `name`, or dims.size().
  std::size_t dim_named(std::string_view name) const;
};

/// Fills arrays of kMaxOperands where a nest has fewer.
inline const OperandModel& operand_or_first(const NestModel& model, std::size_t i) {
  return model.operands[i < model.operands.size() ? i : 0];
}

/// Product of all loop sizes.
std::int64_t iterations_of(const CoreProblem& problem);

/// Throws InfeasibleError when the nest is larger than the limits above.
NestModel make_nest_model(const CoreProblem& problem, const ModelChoices& choices = {});

/// Elements of one operand touched by the loops multiplied in so far.
class Footprint {
public:
  explicit Footprint(const OperandModel& operand);
  Footprint(const Footprint& other) { *this = other; }
  Footprint& operator=(const Footprint& other); ///< copies only what the operand has
  void multiply(const Loop& loop) {
    switch (operand_->relevance[loop.dim]) {
    case Relevance::irrelevant:
      return;
    case Relevance::relevant:
      relevant_ *= loop.size;
      return;
    case Relevance::partial:
      counts_[operand_->axis_of[loop.dim]][operand_->term_of[loop.dim]] *= loop.size;
      partial_iterations_ *= loop.size;
      counted_ = false;
      return;
    }
  }
  double elements() const { return relevant_ * shared(); }
  /// Distinct indices on a shared axis.
  double on_axis(std::size_t axis) const {
    return operand_->axis[axis].count(counts_[axis].data());
  }
  /// Iterations of the partial loops per distinct element they touch; 1 without overlap.
  double overlap() const { return partial_iterations_ / shared(); }

  /// Every number that later factors are multiplied into.
  template <class Use>
  void each_number(const Use& use) const {
    use(relevant_);
    use(partial_iterations_);
    for (std::size_t i = 0; i < operand_->axes; ++i) {
      for (std::size_t t = 0; t < operand_->axis[i].terms; ++t)
        use(counts_[i][t]);
    }
  }

private:
  /// Distinct elements on the shared axes; counted when asked for, as several loops often join
  /// between two questions.
  double shared() const {
    if (!counted_)
      count();
    return shared_;
  }
  void count() const;

  const OperandModel* operand_ = nullptr;
  double relevant_ = 1;
  double partial_iterations_ = 1;
  mutable double shared_ = 1;
  mutable bool counted_ = true;
  std::array<std::array<double, kMaxTerms>, kMaxAxes> counts_;
};

inline Footprint& Footprint::operator=(const Footprint& other) {
  operand_ = other.operand_;
  relevant_ = other.relevant_;
  shared_ = other.shared_;
  partial_iterations_ = other.partial_iterations_;
  counted_ = other.counted_;
  for (std::size_t i = 0; i < operand_->axes; ++i) {
    for (std::size_t t = 0; t < operand_->axis[i].terms; ++t)
      counts_[i][t] = other.counts_[i][t];
  }
  return *this;
}

/// "operand 2 (I1)" for messages.
std::string operand_name(const CoreProblem& problem, std::size_t operand);

} // namespace monet::core_cost_detail
