// Execution: runs a graph operator by operator on this machine, with rounding.
#include "base/shared/checked.hpp"
#include "base/shared/rng.hpp"
#include "execute/host_memory.hpp"
#include "execute/kernels/kernel.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/execute/execute.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <variant>

namespace monet {

const std::vector<std::string>& arithmetic_names() {
  static const std::vector<std::string> names{"fp64", "fp32", "formats"};
  return names;
}

std::optional<Arithmetic> arithmetic_named(std::string_view name) {
  const auto found = std::ranges::find(arithmetic_names(), name);
  if (found == arithmetic_names().end())
    return std::nullopt;
  return static_cast<Arithmetic>(found - arithmetic_names().begin());
}

std::string_view name_of(Arithmetic arithmetic) {
  return arithmetic_names().at(static_cast<std::size_t>(arithmetic));
}

namespace {

template <class Real>
void run_kernel(const KernelEntry& entry, KernelContext<Real>& context) {
  if constexpr (std::is_same_v<Real, double>) {
    entry.fp64(context);
  } else {
    entry.fp32(context);
  }
}

/// An operand of one of ONNX's products that is not real: kernels multiply real numbers only.
const Tensor* integer_factor(const Graph& graph, const Operator& op) {
  if (op.nest.compute != ComputeKind::mac || !op.domain.empty())
    return nullptr;
  for (const Access& access : op.nest.operands) {
    if (!is_floating(graph.tensor(access.tensor).type))
      return &graph.tensor(access.tensor);
  }
  return nullptr;
}

void check_kernels(const Graph& graph) {
  ProblemList problems;
  for (const Operator& op : graph.operators()) {
    if (is_executable(op)) {
      if (const Tensor* factor = integer_factor(graph, op))
        problems.add(location_of(graph, op),
                     fmt::format("'{}' is {}, only products of real numbers can be executed",
                                 factor->name, name_of(factor->type)));
      continue;
    }
    problems.add(location_of(graph, op),
                 fmt::format("operator type '{}' of domain '{}' cannot be executed", op.op_type,
                             op.domain.empty() ? "ai.onnx" : op.domain));
  }
  problems.throw_if_any();
}

/// Casts to fp8 with a scale: what they write stands for its numbers over the scale.
bool rounds_itself(const Operator& op) {
  return op.domain == kMonetDomain &&
         (op.op_type == ops::ScaledCast || op.op_type == ops::BlockCast);
}

/// Whether a gradient has a type that cannot hold all single-precision numbers.
bool is_narrow_gradient(const Tensor& tensor) {
  if (!is_gradient(tensor.kind) || !is_floating(tensor.type) || tensor.type == ElementType::qint8)
    return false;
  const NumberFormat& element = tensor.type.format().element;
  return element != kSinglePrecision && fits_single(element);
}

} // namespace

/// Counts bytes as operators run.
class MemoryMeter {
public:
  explicit MemoryMeter(const Graph& graph) : graph_(&graph), output_(graph.tensors().size()) {
    for (const TensorId id : graph.outputs)
      output_[id.index()] = true;
  }

  void begin() {
    now_ = peak_ = 0;
    for (const Tensor& tensor : graph_->tensors()) {
      if (!tensor.producer && !tensor.consumers.empty())
        now_ += bytes(tensor);
    }
  }
  /// While the operator runs, all that it reads and writes is there.
  void run(OpId id) {
    const Operator& op = graph_->op(id);
    for (const auto& output : op.outputs)
      now_ += output ? bytes(graph_->tensor(*output)) : 0;
    peak_ = std::max(peak_, now_);
    std::vector<TensorId> touched;
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (const auto& tensor : *list) {
        if (tensor && std::ranges::find(touched, *tensor) == touched.end())
          touched.push_back(*tensor);
      }
    }
    for (const TensorId tensor : touched) {
      if (is_over(tensor, id))
        now_ -= bytes(graph_->tensor(tensor));
    }
  }
  std::int64_t peak() const { return peak_; }

private:
  static std::int64_t bytes(const Tensor& tensor) {
    return tensor.alias_of ? 0 : bytes_of(size_of(tensor));
  }
  bool is_over(TensorId id, OpId after) const {
    const Tensor& tensor = graph_->tensor(id);
    if (output_[id.index()] || (!tensor.consumers.empty() && tensor.consumers.back() != after))
      return false;
    return tensor.producer || tensor.kind == TensorKind::input || tensor.kind == TensorKind::label;
  }

  const Graph* graph_;
  std::vector<bool> output_; ///< per tensor: a result of the graph
  std::int64_t now_ = 0;
  std::int64_t peak_ = 0;
};

struct Execution::Machine {
  using Stores = std::variant<TensorStore<double>, TensorStore<float>>;

  Machine(const Graph& of, const ExecuteOptions& with)
      : graph(of), options(with), meter(of),
        stores(with.arithmetic == Arithmetic::fp64 ? Stores(TensorStore<double>(of))
                                                   : Stores(TensorStore<float>(of))) {
    for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
      if (graph.tensors()[i].values)
        set_constant(TensorId(i));
    }
  }

  /// Rounding of numbers that the caller sets.
  Rounding nearest() const {
    Rounding rounding = options.formats.results;
    rounding.mode = RoundTo::even;
    return rounding;
  }

  template <class T>
  void set(TensorId id, std::span<const T> numbers) {
    const Tensor& tensor = graph.tensor(id);
    internal_check(static_cast<std::int64_t>(numbers.size()) == element_count(tensor),
                   fmt::format("'{}' has {} elements, not {}", tensor.name, element_count(tensor),
                               numbers.size()));
    std::visit(
        [&](auto& store) {
          auto& to = store.allocate(id);
          if (to.real.empty())
            copy(numbers, to.whole, [](T number) { return whole_of(number); });
          else
            copy(numbers, to.real,
                 [](T number) { return static_cast<std::decay_t<decltype(to.real[0])>>(number); });
          if constexpr (std::is_same_v<std::decay_t<decltype(to)>, TensorNumbers<float>>) {
            if (rounds())
              round_numbers(to, id, nearest());
          }
        },
        stores);
  }

  /// Converts numbers; `from` and `to` have equal sizes.
  template <class T, class To, class Convert>
  static void copy(std::span<const T> from, std::vector<To>& to, Convert convert) {
    constexpr std::size_t kPiece = 4096; // between looks at the clock
    for (std::size_t begin = 0; begin < from.size(); begin += kPiece) {
      check_stop();
      const auto piece = from.subspan(begin, std::min(kPiece, from.size() - begin));
      std::ranges::transform(piece, to.begin() + static_cast<std::ptrdiff_t>(begin), convert);
    }
  }

  static std::int64_t whole_of(double value) { return saturated_integer(std::round(value)); }
  static std::int64_t whole_of(std::int64_t value) { return value; }

  void set_constant(TensorId id) {
    std::visit([&](const auto& values) { set(id, std::span(values)); }, *graph.tensor(id).values);
  }

  template <class Real>
  void run(TensorStore<Real>& store, const std::function<void(OpId)>& after) {
    begin();
    for (std::size_t i = 0; i < graph.operators().size(); ++i) {
      run_operator(store, OpId(i));
      if (after)
        after(OpId(i));
      if (!options.keep_all)
        free_after(store, OpId(i));
    }
  }

  void begin() {
    meter.begin();
    gradients = {};
  }

  template <class Real>
  void run_operator(TensorStore<Real>& store, OpId id) {
    const Operator& op = graph.op(id);
    check_stop();
    for (const TensorId output : present(op.outputs))
      store.allocate(output);
    check_numbers(store, op);
    KernelContext<Real> context(store, op,
                                {options.seed + step, options.jobs,
                                 rounds() ? &options.formats : nullptr, options.instructions,
                                 &gradients});
    run_kernel(*find_kernel(op), context);
    if constexpr (std::is_same_v<Real, float>)
      round_results(store, op);
    meter.run(id);
  }

  bool rounds() const { return options.arithmetic == Arithmetic::formats; }

  /// Rounds a tensor to its type; stochastic rounding draws by seed, step and tensor.
  void round_numbers(TensorNumbers<float>& numbers, TensorId id, const Rounding& by) const {
    const Tensor& tensor = graph.tensor(id);
    if (numbers.real.empty() || tensor.type == ElementType::qint8 ||
        !fits_single(tensor.type.format().element))
      return;
    Rounding rounding = by;
    rounding.seed = random_bits(options.seed + step, 0); // as if this step were the first
    round_tensor(tensor.shape, numbers.real, tensor.type.format(), rounding,
                 {id.index(), options.jobs, options.instructions});
  }
  /// Rounds the results of an operator. Views are skipped since they hold no new numbers, casts
  /// with scales since they round by themselves.
  void round_results(TensorStore<float>& store, const Operator& op) {
    if (!rounds() || is_view(graph, op))
      return;
    const bool is_rounded = rounds_itself(op);
    for (const TensorId id : present(op.outputs)) {
      const bool counts = is_narrow_gradient(graph.tensor(id));
      const std::int64_t before =
          counts ? nonzeros(store[is_rounded ? *op.inputs[0] : id].real) : 0;
      if (!is_rounded)
        round_numbers(store[id], id, options.formats.results);
      if (counts)
        gradients.add(before, nonzeros(store[id].real));
    }
  }

  /// Checks what kernels rely on: one number per element, of the tensor's kind.
  template <class Real>
  void check_numbers(const TensorStore<Real>& store, const Operator& op) const {
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (const TensorId id : present(*list)) {
        const Tensor& tensor = graph.tensor(id);
        const bool real = is_floating(tensor.type);
        const std::size_t count = real ? store[id].real.size() : store[id].whole.size();
        internal_check(static_cast<std::int64_t>(count) == element_count(tensor),
                       fmt::format("'{}' has {} numbers for {} elements at '{}'", tensor.name,
                                   count, element_count(tensor), op.name));
      }
    }
  }

  /// Forgets intermediate tensors whose last reader has run.
  template <class Real>
  void free_after(TensorStore<Real>& store, OpId op) {
    for (const TensorId id : freed_after(graph, op))
      store.free(id);
  }

  void check_inputs() const {
    ProblemList problems;
    std::visit(
        [&](const auto& store) {
          for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
            const Tensor& tensor = graph.tensors()[i];
            if (tensor.producer || tensor.consumers.empty() || store[TensorId(i)].present)
              continue;
            problems.add({graph.origin, 0, 0, fmt::format("tensor '{}'", tensor.name)},
                         "has no numbers to execute with");
          }
        },
        stores);
    problems.throw_if_any();
  }

  const Graph& graph;
  ExecuteOptions options;
  MemoryMeter meter;
  std::uint64_t step = 0;
  GradientRounding gradients; ///< of the last run
  Stores stores;
};

void GradientRounding::add(std::int64_t before, std::int64_t after) {
  numbers += before;
  flushed += std::max<std::int64_t>(before - after, 0); // a block of NaN has no zeros any more
}

Execution::Execution(const Graph& graph, const ExecuteOptions& options) {
  check_kernels(graph);
  check_memory(graph, options);
  machine_ = std::make_unique<Machine>(graph, options);
}
Execution::~Execution() = default;
Execution::Execution(Execution&&) noexcept = default;
Execution& Execution::operator=(Execution&&) noexcept = default;

void Execution::set(TensorId tensor, std::span<const double> numbers) {
  machine_->set(tensor, numbers);
}

void Execution::set_integers(TensorId tensor, std::span<const std::int64_t> numbers) {
  machine_->set(tensor, numbers);
}

bool Execution::has(TensorId tensor) const {
  return std::visit([&](const auto& store) { return store[tensor].present; }, machine_->stores);
}

std::vector<double> Execution::get(TensorId tensor) const {
  internal_check(has(tensor),
                 fmt::format("'{}' has no numbers", machine_->graph.tensor(tensor).name));
  return std::visit(
      [&](const auto& store) {
        const auto& numbers = store[tensor];
        std::vector<double> result(numbers.real.begin(), numbers.real.end());
        for (const std::int64_t value : numbers.whole)
          result.push_back(static_cast<double>(value));
        return result;
      },
      machine_->stores);
}

bool Execution::is_finite(TensorId tensor) const {
  internal_check(has(tensor),
                 fmt::format("'{}' has no numbers", machine_->graph.tensor(tensor).name));
  return std::visit(
      [&](const auto& store) {
        return std::ranges::all_of(store[tensor].real, [](auto x) { return std::isfinite(x); });
      },
      machine_->stores);
}

void Execution::run(const std::function<void(OpId)>& after) {
  machine_->check_inputs();
  try {
    std::visit([&](auto& store) { machine_->run(store, after); }, machine_->stores);
  } catch (const Stopped& stopped) {
    throw Stopped("stopped while the graph was executed", stopped.by_clock());
  }
}

void Execution::run_part(std::size_t first, std::size_t last) {
  if (first == 0)
    machine_->begin();
  std::visit(
      [&](auto& store) {
        for (std::size_t i = first; i < last; ++i)
          machine_->run_operator(store, OpId(i));
      },
      machine_->stores);
}

const GradientRounding& Execution::gradient_rounding() const {
  return machine_->gradients;
}

std::int64_t Execution::peak_bytes() const {
  return machine_->meter.peak();
}

void Execution::advance() {
  const Graph& graph = machine_->graph;
  std::visit(
      [&](auto& store) {
        for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
          const auto root = graph.tensors()[i].alias_of;
          if (!root || !store[TensorId(i)].present)
            continue;
          store[*root] = store[TensorId(i)];
        }
      },
      machine_->stores);
  ++machine_->step;
}

} // namespace monet
