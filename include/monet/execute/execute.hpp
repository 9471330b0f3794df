// Runs a graph numerically: every operator through its loop nest, in plain double or single
// precision. The reference that gradients and updates are checked with.
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

/// Arithmetic of every operation.
enum class Arithmetic {
  fp64, ///< element types of tensors do not round: a bf16 tensor holds what was computed
  fp32, ///< the same in single precision
  /// Single precision inside operators, and each rounds what it writes to its tensor's type; what
  /// is given is rounded, too. Views and products' operands are taken as they are, and products may
  /// have units of their own. fp64 tensors hold single-precision numbers.
  formats,
};
/// Names in options and files, in the order of the enumeration.
const std::vector<std::string>& arithmetic_names();
std::string_view name_of(Arithmetic arithmetic);
std::optional<Arithmetic> arithmetic_named(std::string_view name);

struct ExecuteOptions {
  Arithmetic arithmetic = Arithmetic::fp64;
  std::uint64_t seed = 0; ///< of random masks, and of stochastic rounding
  bool keep_all = true;   ///< false: intermediate tensors are freed after their last reader
  /// InfeasibleError, before anything is allocated, where execution_bytes() is more.
  std::int64_t memory_limit_bytes = std::numeric_limits<std::int64_t>::max();
  StepArithmetic formats; ///< of arithmetic `formats`
  int jobs = 1;           ///< threads; results are the same for any number
  Instructions instructions =
      Instructions::best; ///< of arithmetic `formats`; they change no result
};

/// Numbers of gradients that were rounded, each as often as it was: when they were written to a
/// tensor of fewer bits than single precision, or when a unit's `operands` converted them at the
/// entrance of a product of a backward part.
struct GradientRounding {
  std::int64_t numbers = 0; ///< other than 0
  std::int64_t flushed = 0; ///< of them, became 0

  void add(std::int64_t before, std::int64_t after);
};

/// Most bytes of this machine that the numbers of all tensors take at once, with the copies that
/// kernels make of their operands. The largest number where it is more.
std::int64_t execution_bytes(const Graph& graph, const ExecuteOptions& options = {});

/// The numbers of all tensors of one graph. Numbers are row-major; integers and booleans are held
/// exactly. Works on graphs with views and on folded ones. What takes long heeds check_stop().
class Execution {
public:
  /// InputError listing every operator that cannot be executed, each at its node; InfeasibleError
  /// beyond the memory limit. The graph must outlive the execution.
  explicit Execution(const Graph& graph, const ExecuteOptions& options = {});
  ~Execution();
  Execution(Execution&&) noexcept;
  Execution& operator=(Execution&&) noexcept;

  /// One number per element; InternalError otherwise. Integer tensors take rounded numbers.
  void set(TensorId tensor, std::span<const double> numbers);
  void set_integers(TensorId tensor, std::span<const std::int64_t> numbers);
  bool has(TensorId tensor) const;
  /// InternalError when the tensor has no numbers.
  std::vector<double> get(TensorId tensor) const;

  /// Executes all operators in order. Every tensor without a producer that somebody reads must have
  /// numbers (constants with known values have them): InputError naming those without.
  /// `after` is told every operator that has run; running again before advance() gives the same
  /// numbers.
  void run(const std::function<void(OpId)>& after = {});
  /// Executes operators [first, last) in order, and nothing else: what runs between the collectives
  /// of a rank. Begins a run with the first operator. InternalError at a collective, and where a
  /// tensor that is read has no numbers.
  void run_part(std::size_t first, std::size_t last);
  /// What the last run rounded to the formats of gradients. In arithmetic `formats`; nothing in
  /// others.
  const GradientRounding& gradient_rounding() const;
  /// None of a tensor's numbers is infinite or NaN. InternalError when it has no numbers.
  bool is_finite(TensorId tensor) const;
  /// The most bytes that lay in memory at once during the last run, in the element types of the
  /// tensors: what nobody reads any more is gone (with keep_all only as far as this counts), what
  /// overwrites a tensor takes no memory of its own. For a graph without views.
  std::int64_t peak_bytes() const;
  /// Puts results that overwrite a tensor in place (updated weights, states, running statistics)
  /// into that tensor: the start of the next step. Masks then come from the next step's seed.
  void advance();

private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

bool is_executable(const Operator& op);

/// The first operator that computes with a tensor that has readers, behind casts with a scale.
const Operator& first_reader(const Graph& graph, const Tensor& tensor);
/// Inputs of a weight's first reader that one output element sums over, at least 1.
std::int64_t fan_in(const Graph& graph, const Tensor& weight);

/// How fill() chooses the numbers of one tensor: offset + scale * uniform, or integers below
/// `range`.
struct FillRule {
  double offset = 0.0;
  double scale = 1.0;
  std::int64_t range = 0; ///< integers in [0, range) when positive
};
/// Numbers for every tensor without a producer that has none yet, by name and seed.
void fill(Execution& execution, const TrainingGraph& step, std::uint64_t seed);
/// Tells the optimiser which step this is, counted from 1; optimisers that correct for their first
/// steps need it. A new execution is at step 1.
void set_step_number(Execution& execution, const TrainingGraph& step, std::int64_t number);
/// Whether a tensor of that name, or a part of it, waits for numbers.
bool takes_numbers(const Execution& execution, const TrainingGraph& step, std::string_view name);
/// Gives every tensor of that name its numbers; of a weight that the step has in parts, each part
/// its own. Skips what is computed, has numbers already, or has another size. How many tensors got
/// numbers.
std::int64_t set_by_name(Execution& execution, const TrainingGraph& step, std::string_view name,
                         std::span<const double> numbers);
/// The numbers of one tensor by a rule.
std::vector<double> generate(const Tensor& tensor, const FillRule& rule, std::uint64_t seed);

/// Steps that take turns on the same weights and running statistics: an execution for each. What
/// several of them have by one name, parameters and buffers, is one tensor: it passes from the step
/// that changed it to the others.
class AlternatingExecution {
public:
  /// Keeps pointers to the steps.
  explicit AlternatingExecution(std::vector<const TrainingGraph*> steps,
                                const ExecuteOptions& options = {});

  std::size_t size() const { return steps_.size(); }
  Execution& of(std::size_t step) { return executions_[step]; }
  const TrainingGraph& graph(std::size_t step) const { return *steps_[step]; }

  /// Gives the others what the first step that has a tensor has in it; after all numbers are set.
  void begin();
  /// Runs a step, the how manieth time its optimiser is told, and hands its results on. What it
  /// made may be read until it runs again.
  void run(std::size_t step);

private:
  void hand_on(std::size_t from);

  std::vector<const TrainingGraph*> steps_;
  std::deque<Execution> executions_;
  Integers runs_; ///< of each step
};

} // namespace monet
