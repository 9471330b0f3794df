// Formulas of optimiser updates, in PyTorch 1.13's order of operations if it has the optimiser,
// otherwise as in the paper or its published code. Rules (update.cpp) and execution use them. To
// add one, write a function here and add a line to kUpdates.
#include "workload/shared/update_formula.hpp"

#include "workload/operators/formula_writer.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace monet {

namespace {

// ---- PyTorch 1.13 -------------------------------------------------------------------------------

/// g + decay*w: weight decay as a penalty on the squared weights.
Term penalised_gradient(FormulaWriter& u) {
  return u.gradient() + u.attribute("weight_decay") * u.weight();
}
/// w * (1 - lr*decay): weight decay decoupled from the gradient (Loshchilov and Hutter 2019).
Term decayed_weight(FormulaWriter& u) {
  const double decay = u.attribute("weight_decay");
  return decay == 0.0 ? u.weight() : u.weight() * (1.0 - decay * u.learning_rate());
}

void sgd(FormulaWriter& u) {
  u.output_weight(u.weight() - u.learning_rate() * penalised_gradient(u));
}

/// Momentum; the first step uses the undamped gradient, since PyTorch's buffer starts as a copy of
/// it.
void momentum(FormulaWriter& u) {
  const double mu = u.attribute("momentum", 0.9);
  const double dampening = u.attribute("dampening");
  const Term g = penalised_gradient(u);
  const Term undamped = dampening == 0.0 ? 1.0 : 1.0 - dampening * minimum(u.step() - 1.0, 1.0);
  const Term m = mu * u.state(0) + undamped * g;
  u.output_state(0, m);
  u.output_weight(u.weight() - u.learning_rate() * (u.flag("nesterov") ? g + mu * m : m));
}

struct Moments {
  Term first;
  Term second;
};

Moments moments(FormulaWriter& u, Term g) {
  const double b1 = u.attribute("beta1", 0.9);
  const double b2 = u.attribute("beta2", 0.999);
  const Term m = b1 * u.state(0) + (1.0 - b1) * g;
  const Term v = b2 * u.state(1) + (1.0 - b2) * g * g;
  u.output_state(0, m);
  u.output_state(1, v);
  return {m, v};
}

/// Adam (Kingma and Ba 2015); epsilon is added outside the root, after the correction of the second
/// moment. With `amsgrad`, uses the maximum second moment (Reddi, Kale and Kumar 2018).
void adam_step(FormulaWriter& u, Term w, Term g) {
  const Moments next = moments(u, g);
  const Term c1 = 1.0 - power(u.attribute("beta1", 0.9), u.step());
  const Term c2 = square_root(1.0 - power(u.attribute("beta2", 0.999), u.step()));
  Term second = next.second;
  if (u.flag("amsgrad")) {
    second = maximum(u.state(2), second);
    u.output_state(2, second);
  }
  const Term divisor = square_root(second) / c2 + u.attribute("epsilon", 1e-8);
  u.output_weight(w - (u.learning_rate() / c1) * (next.first / divisor));
}
void adam(FormulaWriter& u) {
  adam_step(u, u.weight(), penalised_gradient(u));
}
void adamw(FormulaWriter& u) {
  adam_step(u, decayed_weight(u), u.gradient());
}

/// Adam for the rows that a step has read; only their moments change (SparseAdam). Epsilon is added
/// to the root of the uncorrected second moment.
void sparse_adam(FormulaWriter& u) {
  const double b1 = u.attribute("beta1", 0.9);
  const double b2 = u.attribute("beta2", 0.999);
  const Term g = u.gradient();
  const Term m = (g - u.state(0)) * (1.0 - b1) + u.state(0);
  const Term v = (g * g - u.state(1)) * (1.0 - b2) + u.state(1);
  u.output_state(0, m);
  u.output_state(1, v);
  const Term c1 = 1.0 - power(b1, u.step());
  const Term c2 = 1.0 - power(b2, u.step());
  const Term rate = u.learning_rate() * square_root(c2) / c1;
  u.output_weight(u.weight() - rate * (m / (square_root(v) + u.attribute("epsilon", 1e-8))));
}

/// RMSprop (Hinton's lecture 6e); `centered` after Graves 2013.
void rmsprop(FormulaWriter& u) {
  const double alpha = u.attribute("alpha", 0.99);
  const double mu = u.attribute("momentum");
  const Term g = penalised_gradient(u);
  const Term v = alpha * u.state(0) + (1.0 - alpha) * g * g;
  u.output_state(0, v);
  std::size_t next = 1;
  Term variance = v;
  if (u.flag("centered")) {
    const Term mean = alpha * u.state(next) + (1.0 - alpha) * g;
    u.output_state(next++, mean);
    variance = v - mean * mean;
  }
  Term move = g / (square_root(variance) + u.attribute("epsilon", 1e-8));
  if (mu > 0.0) {
    move = mu * u.state(next) + move;
    u.output_state(next, move);
  }
  u.output_weight(u.weight() - u.learning_rate() * move);
}

/// Adagrad (Duchi, Hazan and Singer 2011).
void adagrad(FormulaWriter& u) {
  const Term g = penalised_gradient(u);
  const Term sum = u.state(0) + g * g;
  const double decay = u.attribute("learning_rate_decay");
  const Term rate =
      decay == 0.0 ? u.learning_rate() : u.learning_rate() / (1.0 + decay * (u.step() - 1.0));
  u.output_state(0, sum);
  u.output_weight(u.weight() - rate * (g / (square_root(sum) + u.attribute("epsilon", 1e-10))));
}

// ---- published code -----------------------------------------------------------------------------

/// Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2).
void lion(FormulaWriter& u) {
  const double b1 = u.attribute("beta1", 0.9);
  const double b2 = u.attribute("beta2", 0.99);
  const Term g = u.gradient();
  const Term direction = sign(b1 * u.state(0) + (1.0 - b1) * g);
  u.output_weight(decayed_weight(u) - u.learning_rate() * direction);
  u.output_state(0, b2 * u.state(0) + (1.0 - b2) * g);
}

/// LAMB (You et al. 2020, "Large batch optimization for deep learning", algorithm 2); outputs
/// direction, first and second moment.
void lamb_direction(FormulaWriter& u) {
  const Moments next = moments(u, u.gradient());
  const Term c1 = 1.0 - power(u.attribute("beta1", 0.9), u.step());
  const Term c2 = 1.0 - power(u.attribute("beta2", 0.999), u.step());
  const Term adam =
      (next.first / c1) / (square_root(next.second / c2) + u.attribute("epsilon", 1e-6));
  const double decay = u.attribute("weight_decay");
  u.output(0, decay == 0.0 ? adam : adam + decay * u.weight(), 0.0);
}

/// LAMB, inputs (w, direction, norm of w, norm of the direction). Multiplies the layer's learning
/// rate by the ratio of the norms, or by 1 if one of them is zero.
void lamb_update(FormulaWriter& u) {
  const Term of_weight = u.scalar(kUpdateFirstState);
  const Term of_move = u.scalar(kUpdateFirstState + 1);
  const Term both = sign(of_weight) * sign(of_move); // norms: 0 or 1
  const Term ratio = both * (of_weight / (of_move + (1.0 - both))) + (1.0 - both);
  u.output_weight(u.weight() - u.learning_rate() * ratio * u.input(kUpdateGradient));
}

/// Weight of the old moment in step t, 1 - t^decay_rate (Shazeer and Stern 2018, "Adafactor",
/// algorithms 4 and 5).
Term adafactor_share(FormulaWriter& u) {
  return 1.0 - power(u.step(), u.attribute("decay_rate", -0.8));
}

/// Adafactor: moments of the rows or columns of a matrix. (-, sums of squares of the gradient,
/// rows) -> rows, with `count` squares per sum.
void adafactor_moment(FormulaWriter& u) {
  Term mean = u.input(kUpdateGradient) / u.attribute("count", 1.0);
  if (u.has(kUpdateGradientScale)) {
    const Term scale = u.scalar(kUpdateGradientScale);
    mean = mean * (scale * scale);
  }
  const Term share = adafactor_share(u);
  const Term before = u.state(0);
  u.output(0, share * before + (1.0 - share) * (mean + u.attribute("epsilon", 1e-30)), before);
}

/// Adafactor: unfactored second moment of a vector. (-, g, v) -> (direction, v).
void adafactor_vector(FormulaWriter& u) {
  const Term g = u.gradient();
  const Term share = adafactor_share(u);
  const Term v = share * u.state(0) + (1.0 - share) * (g * g + u.attribute("epsilon", 1e-30));
  u.output_state(0, v);
  u.output(0, g / square_root(v), 0.0);
}

/// Adafactor: (-, g, rows, columns, mean of the rows) -> g / sqrt(rows * columns / mean).
void adafactor_direction(FormulaWriter& u) {
  const Term rows = u.state(0) / u.state(2);
  const Term move = (1.0 / square_root(rows)) * (1.0 / square_root(u.state(1)));
  u.output(0, move * u.gradient(), 0.0);
}

/// Adafactor: inputs (w, direction, sum of its squares, sum of the weight's squares if needed,
/// momentum).
void adafactor_update(FormulaWriter& u) {
  const double count = u.attribute("count", 1.0);
  const Term rms = square_root(u.scalar(kUpdateFirstState) / count);
  const Term clip = maximum(rms / u.attribute("clip_threshold", 1.0), 1.0);
  Term rate = u.learning_rate();
  if (u.flag("relative_step"))
    rate = minimum(1.0 / square_root(u.step()), u.attribute("largest_step", 1e-2));
  std::size_t next = kUpdateFirstState + 1;
  if (u.flag("scale_parameter")) {
    const Term size = square_root(u.scalar(next++) / count);
    rate = rate * maximum(size, u.attribute("epsilon2", 1e-3));
  }
  Term move = rate * (u.input(kUpdateGradient) / clip);
  const double b1 = u.attribute("beta1");
  if (b1 > 0.0) {
    const Term before = u.input(next);
    move = b1 * before + (1.0 - b1) * move;
    u.output(1, move, before);
  }
  const double decay = u.attribute("weight_decay");
  const Term w = decay == 0.0 ? u.weight() : u.weight() - (decay * rate) * u.weight();
  u.output_weight(w - move);
}

/// Muon (Jordan et al. 2024, "Muon: an optimizer for hidden layers"): (-, g, buffer) -> (matrix to
/// orthogonalise, buffer).
void muon_momentum(FormulaWriter& u) {
  const double mu = u.attribute("momentum", 0.95);
  const Term g = u.gradient();
  const Term m = mu * u.state(0) + g;
  u.output_state(0, m);
  const Term move = u.flag("nesterov") ? g + mu * m : m;
  u.output(0, move, 0.0);
}
/// Muon: divides the matrix by its norm, so that the iteration converges. Inputs (-, matrix, norm).
void muon_normalise(FormulaWriter& u) {
  const Term norm = maximum(u.scalar(kUpdateFirstState), u.attribute("epsilon", 1e-7));
  u.output(0, u.input(kUpdateGradient) / norm, 0.0);
}
/// Weighted sum alpha*a + beta*b of the inputs (a, b).
void weighted_sum(FormulaWriter& u) {
  u.output(0, u.attribute("alpha", 1.0) * u.input(0) + u.attribute("beta", 1.0) * u.input(1), 0.0);
}
/// Muon: inputs (w, orthogonal direction).
void muon_update(FormulaWriter& u) {
  const Term rate = u.attribute("scale", 1.0) * u.learning_rate();
  u.output_weight(decayed_weight(u) - rate * u.input(kUpdateGradient));
}

// ---- in addition to the optimiser
// ----------------------------------------------------------------

/// (-, g) -> g scaled and clipped, for operators that read it several times.
void clipped_gradient(FormulaWriter& u) {
  u.output(0, u.gradient(), 0.0);
}
/// (w, average) -> exponential moving average; the first step copies the weight, as PyTorch's
/// AveragedModel does.
void average(FormulaWriter& u) {
  const Term before = u.state(0);
  const Term share = u.attribute("decay") * minimum(u.step() - 1.0, 1.0);
  u.output(0, share * before + (1.0 - share) * u.weight(), before);
}

// ---- the table ----------------------------------------------------------------------------------

struct Update {
  OpType op_type;
  void (*write)(FormulaWriter& writer);
  std::array<std::string_view, 4> roles; ///< roles of states, from kUpdateFirstState on
  bool rows = false;                     ///< see kUpdateRows
};

constexpr std::array kUpdates{
    Update{ops::SgdUpdate, sgd, {}},
    Update{ops::MomentumUpdate, momentum, {"momentum"}},
    Update{ops::AdamUpdate, adam, {"first_moment", "second_moment", "largest_second_moment"}},
    Update{ops::AdamWUpdate, adamw, {"first_moment", "second_moment", "largest_second_moment"}},
    Update{ops::RmspropUpdate, rmsprop, {"second_moment", "state_1", "state_2"}},
    Update{ops::AdagradUpdate, adagrad, {"sum"}},
    Update{ops::LionUpdate, lion, {"momentum"}},
    Update{ops::LambDirection, lamb_direction, {"first_moment", "second_moment"}},
    Update{ops::LambUpdate, lamb_update, {"weight_norm", "direction_norm"}},
    Update{ops::AdafactorMoment, adafactor_moment, {"moment"}},
    Update{ops::AdafactorVector, adafactor_vector, {"second_moment"}},
    Update{ops::AdafactorDirection, adafactor_direction, {"rows", "columns", "mean"}},
    Update{ops::AdafactorUpdate, adafactor_update, {"squares", "state_1", "state_2"}},
    Update{ops::MuonMomentum, muon_momentum, {"momentum"}},
    Update{ops::MuonNormalise, muon_normalise, {"norm"}},
    Update{ops::MuonUpdate, muon_update, {}},
    Update{ops::WeightedSum, weighted_sum, {}},
    Update{ops::SparseSgdUpdate, sgd, {}, true},
    Update{ops::SparseAdamUpdate, sparse_adam, {"first_moment", "second_moment"}, true},
    Update{ops::SparseAdagradUpdate, adagrad, {"sum"}, true},
    Update{ops::ClippedGradient, clipped_gradient, {}},
    Update{ops::AverageUpdate, average, {"average"}},
};

const Update& update_of(const Operator& op) {
  const auto* found = std::ranges::find(kUpdates, op.op_type, &Update::op_type);
  internal_check(found != kUpdates.end(), fmt::format("'{}' has no formula", op.op_type));
  return *found;
}

} // namespace

std::span<const OpType> formula_operators() {
  static constexpr auto kNames = [] {
    return []<std::size_t... kAt>(std::index_sequence<kAt...>) {
      return std::array{kUpdates[kAt].op_type...};
    }
    (std::make_index_sequence<kUpdates.size()>());
  }();
  return kNames;
}

UpdateFormula update_formula(const Graph& graph, const Operator& op) {
  const Update& update = update_of(op);
  FormulaWriter writer(graph, op, kUpdateFirstState + (update.rows ? 1 : 0));
  update.write(writer);
  return writer.finish();
}

bool updates_rows(const Operator& op) {
  const auto* found = std::ranges::find(kUpdates, op.op_type, &Update::op_type);
  return op.domain == kMonetDomain && found != kUpdates.end() && found->rows;
}

VectorWork work_of(const UpdateFormula& formula) {
  using Work = VectorWork;
  // Indexed by ScalarOp.
  static constexpr int Work::*kKinds[]{
      &Work::add,     &Work::add,     &Work::multiply,       &Work::divide,
      &Work::compare, &Work::compare, &Work::transcendental, &Work::square_root,
      &Work::compare};
  VectorWork work;
  const auto uniform = [&](const UpdateValue& value) {
    return value.kind == UpdateValue::Kind::number ||
           (value.kind == UpdateValue::Kind::result && formula.instructions[value.index].uniform);
  };
  for (const ScalarInstruction& instruction : formula.instructions) {
    if (instruction.uniform)
      continue;
    const bool scaled = instruction.op == ScalarOp::divide && uniform(instruction.b);
    ++(work.*(scaled ? &VectorWork::multiply : kKinds[static_cast<std::size_t>(instruction.op)]));
  }
  return work;
}

std::string update_role(const Operator& op, std::size_t input) {
  if (input + 1 == op.inputs.size() && op.attributes.integer("master_weights", 0) != 0)
    return "master";
  static constexpr std::array<std::string_view, kUpdateFirstState> kRoles{
      "W", "I", "learning_rate", "step", "gradient_scale", "skip"};
  if (input < kUpdateFirstState)
    return std::string(kRoles[input]);
  const bool rows = updates_rows(op);
  if (rows && input == kUpdateRows)
    return "rows";
  const auto& roles = update_of(op).roles;
  const std::size_t state = input - kUpdateFirstState - (rows ? 1 : 0);
  const bool named = state < roles.size() && !roles[state].empty();
  return named ? std::string(roles[state]) : fmt::format("state_{}", state);
}

template <class Real>
Real apply(ScalarOp op, Real a, Real b) {
  switch (op) {
  case ScalarOp::add:
    return a + b;
  case ScalarOp::subtract:
    return a - b;
  case ScalarOp::multiply:
    return a * b;
  case ScalarOp::divide:
    return a / b;
  case ScalarOp::minimum:
    return std::min(a, b);
  case ScalarOp::maximum:
    return std::max(a, b);
  case ScalarOp::power:
    return std::pow(a, b);
  case ScalarOp::square_root:
    return std::sqrt(a);
  case ScalarOp::sign:
    return static_cast<Real>((a > Real(0)) - (a < Real(0)));
  }
  throw InternalError("scalar operation without a meaning");
}
template double apply(ScalarOp op, double a, double b);
template float apply(ScalarOp op, float a, float b);

} // namespace monet
