// Numerical execution of a graph: every operator through its loop nest, in double or single
// precision. It is the reference for checks of gradients and updates.
// Example:
//   double loss_of(const TrainingGraph& step) {
//     Execution execution(step.graph);
//     fill(execution, step, 1); // inputs and parameters, by name and seed
//     execution.run();
//     return execution.get(*step.loss).front();
//   }
#pragma once

#include "monet/training_graph/training.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Arithmetic of all operations of an execution.
enum class Arithmetic {
  fp64, ///< double precision; element types do not round: a bf16 tensor holds the exact result
  fp32, ///< single precision; element types do not round
  /// Single precision inside operators. Every operator rounds its results, and inputs are rounded,
  /// to the tensor's type; views and operands of products are not rounded again. A product may use
  /// a unit with formats that differ from its tensors'. fp64 tensors hold single-precision numbers.
  formats,
};
/// Names of the arithmetics in options and files, in the order of the enumeration.
const std::vector<std::string>& arithmetic_names();
std::string_view name_of(Arithmetic arithmetic);
std::optional<Arithmetic> arithmetic_named(std::string_view name);

/// Options of an execution.
struct ExecuteOptions {
  Arithmetic arithmetic = Arithmetic::fp64;
  std::uint64_t seed = 0; ///< seed of random masks and of stochastic rounding
  bool keep_all = true;   ///< false: intermediate tensors are freed after their last reader
  /// Upper limit for execution_bytes(). Beyond it, the constructor throws InfeasibleError before it
  /// allocates anything.
  std::int64_t memory_limit_bytes = std::numeric_limits<std::int64_t>::max();
  StepArithmetic formats;                         ///< formats for arithmetic `formats`
  int jobs = 1;                                   ///< threads; the results do not depend on it
  Instructions instructions = Instructions::best; ///< instructions of `formats`; same results
};

/// Counts of rounded gradient values, one for each time a value is rounded. A value is rounded when
/// it is written to a tensor narrower than single precision. It is also rounded when a unit's
/// `operands` convert it at the input of a product in the backward pass.
struct GradientRounding {
  std::int64_t numbers = 0; ///< nonzero before rounding
  std::int64_t flushed = 0; ///< number of these that were rounded to 0

  void add(std::int64_t before, std::int64_t after);
};

/// Peak memory of an execution on this machine, in bytes: the values of all tensors, and the copies
/// that kernels make of their operands. Saturates at the largest int64.
std::int64_t execution_bytes(const Graph& graph, const ExecuteOptions& options = {});

/// Execution of one graph, with the values of all its tensors. Values are row-major; integers and
/// booleans are exact. Works on graphs with views and on folded ones. Long operations call
/// check_stop().
class Execution {
public:
  /// Prepares the execution of a graph, which must outlive it. Throws InputError listing every
  /// operator that cannot be executed, each at its node; InfeasibleError beyond the memory limit.
  explicit Execution(const Graph& graph, const ExecuteOptions& options = {});
  ~Execution();
  Execution(Execution&&) noexcept;
  Execution& operator=(Execution&&) noexcept;

  /// Sets a tensor's values, one per element; an integer tensor rounds them. Throws InternalError
  /// for a wrong number of values.
  void set(TensorId tensor, std::span<const double> numbers);
  void set_integers(TensorId tensor, std::span<const std::int64_t> numbers);
  bool has(TensorId tensor) const;
  /// Values of a tensor. Throws InternalError if it has none.
  std::vector<double> get(TensorId tensor) const;

  /// Executes all operators in order. Every tensor with readers but without a producer must have
  /// values (constants with known values have them); throws InputError naming those without.
  /// `after` is called after every operator. Running again before advance() yields the same values.
  void run(const std::function<void(OpId)>& after = {});
  /// Executes only operators [first, last), in order, such as a rank's operators between two
  /// collectives. The first operator begins a new run. Throws InternalError at a collective, and if
  /// a tensor that is read has no values.
  void run_part(std::size_t first, std::size_t last);
  /// Counts of gradient values rounded in the last run. Zero unless the arithmetic is `formats`.
  const GradientRounding& gradient_rounding() const;
  /// Whether all values of a tensor are finite. Throws InternalError if it has none.
  bool is_finite(TensorId tensor) const;
  /// Peak memory of the last run, in bytes, with the tensors' element types. A tensor counts until
  /// its last reader has run, even with keep_all. A result that overwrites a tensor needs no extra
  /// memory. Only for a graph without views.
  std::int64_t peak_bytes() const;
  /// Begins the next step: copies results that overwrite a tensor (updated weights, states, running
  /// statistics) into that tensor. Masks then use the next step's seed.
  void advance();

private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

/// Whether execution supports an operator.
bool is_executable(const Operator& op);

/// First operator that computes with a tensor, which must have readers; casts with a scale are
/// skipped.
const Operator& first_reader(const Graph& graph, const Tensor& tensor);
/// Number of inputs over which one output element of a weight's first reader sums, at least 1.
std::int64_t fan_in(const Graph& graph, const Tensor& weight);

/// Rule by which fill() generates the values of one tensor: offset + scale * uniform, or integers
/// below `range`.
struct FillRule {
  double offset = 0.0;
  double scale = 1.0;
  std::int64_t range = 0; ///< integers in [0, range) if positive
};
/// Fills every tensor that has neither a producer nor values, by name and seed.
void fill(Execution& execution, const TrainingGraph& step, std::uint64_t seed);
/// Sets the number of the current step, counted from 1, for optimisers that correct for their first
/// steps. A new execution is at step 1.
void set_step_number(Execution& execution, const TrainingGraph& step, std::int64_t number);
/// Whether a tensor of this name, or a part of it, has no values yet.
bool takes_numbers(const Execution& execution, const TrainingGraph& step, std::string_view name);
/// Sets the values of every tensor of this name; if the step has a weight in parts, each part
/// receives its slice. Skips tensors that are computed, have values already, or have another size.
/// Returns the number of tensors set.
std::int64_t set_by_name(Execution& execution, const TrainingGraph& step, std::string_view name,
                         std::span<const double> numbers);
/// Generates the values of one tensor by a rule.
std::vector<double> generate(const Tensor& tensor, const FillRule& rule, std::uint64_t seed);

/// Execution of several steps that alternate on shared weights and running statistics, each with
/// its own execution. Parameters and buffers with the same name are one tensor, whose new values
/// are copied from the step that changed it to the others.
class AlternatingExecution {
public:
  /// Keeps pointers to the steps, which must outlive this object.
  explicit AlternatingExecution(std::vector<const TrainingGraph*> steps,
                                const ExecuteOptions& options = {});

  std::size_t size() const { return steps_.size(); }
  Execution& of(std::size_t step) { return executions_[step]; }
  const TrainingGraph& graph(std::size_t step) const { return *steps_[step]; }

  /// Copies each shared tensor from the first step that has it to the others. Call it after all
  /// values are set.
  void begin();
  /// Runs a step, sets its optimiser's step number and copies shared results to the other steps.
  /// Its results can be read until it runs again.
  void run(std::size_t step);

private:
  void hand_on(std::size_t from);

  std::vector<const TrainingGraph*> steps_;
  std::deque<Execution> executions_;
  Integers runs_; ///< number of runs of each step
};

} // namespace monet
