// Recognises x * s(x): GELU (erf and tanh), SiLU, hard swish, x * tanh(softplus(x)). The result is
// a product of x, a function of x, and an optional number, in any order. The function's argument
// must be a polynomial of x with the right coefficients, however it is computed.
#include "workload/onnx/recognise.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace monet::onnx_file {

namespace {

constexpr int kDepth = 8; ///< maximum length of a chain of nodes

struct Product {
  double number = 1.0;
  std::vector<std::string> factors;
};

/// Multiplies the factors of `name` into `product`. A product with several readers counts as a
/// single factor.
void factorise(const Chains& chains, const std::string& name, Product& product,
               Chains::Members& members, int depth) {
  if (const auto known = chains.number(name)) {
    product.number *= *known;
    return;
  }
  Chains::Members passed;
  const Node* node = chains.made_by(name, ops::Mul, passed);
  const bool divided = node == nullptr;
  if (divided)
    node = chains.made_by(name, ops::Div, passed);
  const bool inner = depth < kDepth && (depth == 0 || chains.readers(name) == 1);
  const bool by_number = node != nullptr && chains.number(node->inputs[1]).has_value();
  if (node == nullptr || !inner || (divided && !by_number)) {
    product.factors.push_back(name);
    return;
  }
  members.insert(passed.begin(), passed.end());
  factorise(chains, node->inputs[0], product, members, depth + 1);
  if (divided)
    product.number /= *chains.number(node->inputs[1]);
  else
    factorise(chains, node->inputs[1], product, members, depth + 1);
}

/// Coefficients of 1, x, x^2, x^3.
using Polynomial = std::array<double, 4>;

std::optional<Polynomial> times(const Polynomial& a, const Polynomial& b) {
  Polynomial product{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0)
        continue;
      if (i + j >= product.size())
        return std::nullopt;
      product[i + j] += a[i] * b[j];
    }
  }
  return product;
}

/// Finds the polynomial of `x` that a value equals.
class PolynomialOf {
public:
  PolynomialOf(const Chains& chains, const std::string& x, Chains::Members& members)
      : chains_(chains), x_(x), members_(members) {}

  std::optional<Polynomial> operator()(const std::string& name, int depth = 0) {
    if (chains_.same(name, x_, members_))
      return Polynomial{0, 1, 0, 0};
    if (const auto known = chains_.number(name)) {
      trained_ = trained_ || chains_.is_trained(name);
      return Polynomial{*known, 0, 0, 0};
    }
    if (depth >= kDepth)
      return std::nullopt;
    for (const OpType op_type : {ops::Add, ops::Sub, ops::Mul, ops::Div, ops::Pow, ops::Neg}) {
      if (const Node* node = chains_.made_by(name, op_type, members_))
        return of(*node, depth + 1);
    }
    return std::nullopt;
  }

  /// Whether a coefficient is a parameter, whose number may change.
  bool trained() const { return trained_; }

private:
  std::optional<Polynomial> of(const Node& node, int depth) {
    auto left = (*this)(node.inputs[0], depth);
    if (!left)
      return std::nullopt;
    if (node.op_type == ops::Neg)
      return times(*left, {-1, 0, 0, 0});
    const auto right = (*this)(node.inputs[1], depth);
    if (!right)
      return std::nullopt;
    if (node.op_type == ops::Mul)
      return times(*left, *right);
    if (node.op_type == ops::Add || node.op_type == ops::Sub) {
      const double sign = node.op_type == ops::Add ? 1 : -1;
      for (std::size_t i = 0; i < left->size(); ++i)
        (*left)[i] += sign * (*right)[i];
      return left;
    }
    const auto number = chains_.number(node.inputs[1]);
    trained_ = trained_ || chains_.is_trained(node.inputs[1]);
    if (!number || *number == 0)
      return std::nullopt;
    if (node.op_type == ops::Div)
      return times(*left, {1 / *number, 0, 0, 0});
    return power(*left, *number);
  }

  static std::optional<Polynomial> power(const Polynomial& base, double exponent) {
    if (exponent != 1 && exponent != 2 && exponent != 3)
      return std::nullopt;
    std::optional<Polynomial> result = base;
    for (int i = 1; i < static_cast<int>(exponent) && result; ++i)
      result = times(*result, base);
    return result;
  }

  const Chains& chains_;
  const std::string& x_;
  Chains::Members& members_;
  bool trained_ = false;
};

struct Found {
  OperatorRow::Chain chain;
  Attributes attributes = {};
};

/// Product number * x * s, where s is matched by one of the functions below.
struct Candidate {
  const Chains& chains;
  double number;
  std::string x;
  std::string s;

  std::optional<Polynomial> polynomial(const std::string& name, Chains::Members& members) const {
    return PolynomialOf(chains, x, members)(name);
  }
  /// Whether `name` is a*x and a is a parameter.
  bool trains_multiple(const std::string& name) const {
    Chains::Members ignored;
    PolynomialOf polynomial(chains, x, ignored);
    return polynomial(name) && polynomial.trained();
  }
  /// Factor a if `name` is a*x.
  std::optional<double> multiple(const std::string& name, Chains::Members& members) const {
    const auto p = polynomial(name, members);
    const bool pure = p && (*p)[0] == 0 && (*p)[2] == 0 && (*p)[3] == 0;
    return pure ? std::optional((*p)[1]) : std::nullopt;
  }
};

std::optional<Found> silu(const Candidate& c, Chains::Members& members) {
  const Node* sigmoid = c.chains.made_by(c.s, ops::Sigmoid, members);
  if (sigmoid == nullptr || c.number != 1.0)
    return std::nullopt;
  const auto alpha = c.multiple(sigmoid->inputs[0], members);
  if (!alpha || *alpha == 0 || c.trains_multiple(sigmoid->inputs[0]))
    return std::nullopt;
  Found found{OperatorRow::Chain::x_sigmoid};
  if (*alpha != 1.0)
    found.attributes.set("alpha", *alpha);
  return found;
}

/// x/2 * (1 + erf(x/sqrt 2)), or x/2 * (1 + tanh(k*(x + 0.044715 x^3))) with k = sqrt(2/pi).
std::optional<Found> gelu(const Candidate& c, Chains::Members& members) {
  const Node* sum = c.chains.made_by(c.s, ops::Add, members);
  const auto parts = sum ? c.chains.with_number(*sum) : std::nullopt;
  if (!parts || parts->second != 1.0 || !is_near(c.number, 0.5))
    return std::nullopt;
  if (const Node* erf = c.chains.made_by(parts->first, ops::Erf, members)) {
    const auto slope = c.multiple(erf->inputs[0], members);
    if (!slope || !is_near(*slope, std::numbers::sqrt2 / 2))
      return std::nullopt;
    return Found{OperatorRow::Chain::x_gaussian};
  }
  const Node* tanh = c.chains.made_by(parts->first, ops::Tanh, members);
  const auto p = tanh ? c.polynomial(tanh->inputs[0], members) : std::nullopt;
  const double k = std::sqrt(2 / std::numbers::pi);
  if (!p || (*p)[0] != 0 || (*p)[2] != 0 || !is_near((*p)[1], k) || !is_near((*p)[3], k * 0.044715))
    return std::nullopt;
  return Found{OperatorRow::Chain::x_gaussian, {{"approximate", std::string("tanh")}}};
}

/// x * clip(x/6 + 1/2, 0, 1), with the factor 1/6 inside or outside.
std::optional<Found> hard_swish(const Candidate& c, Chains::Members& members) {
  const Found found{OperatorRow::Chain::x_clipped};
  if (const Node* hard = c.chains.made_by(c.s, ops::HardSigmoid, members)) {
    const bool same = c.chains.same(hard->inputs[0], c.x, members) && c.number == 1.0 &&
                      is_near(hard->attributes.number("alpha", 0.2), 1.0 / 6) &&
                      is_near(hard->attributes.number("beta", 0.5), 0.5);
    return same ? std::optional(found) : std::nullopt;
  }
  const Node* clip = c.chains.made_by(c.s, ops::Clip, members);
  if (clip == nullptr || clip->inputs.size() != 3)
    return std::nullopt;
  const auto p = c.polynomial(clip->inputs[0], members);
  const auto low = c.chains.number(clip->inputs[1]);
  const auto high = c.chains.number(clip->inputs[2]);
  const bool fits = p && low && high && *low == 0 && is_near(c.number * *high, 1) &&
                    is_near(c.number * (*p)[0], 0.5) && is_near(c.number * (*p)[1], 1.0 / 6) &&
                    (*p)[2] == 0 && (*p)[3] == 0;
  return fits ? std::optional(found) : std::nullopt;
}

/// x * tanh(log(1 + exp(x))).
std::optional<Found> tanh_softplus(const Candidate& c, Chains::Members& members) {
  const Node* tanh = c.chains.made_by(c.s, ops::Tanh, members);
  if (tanh == nullptr || c.number != 1.0)
    return std::nullopt;
  const Node* inner = c.chains.made_by(tanh->inputs[0], ops::Softplus, members);
  if (inner == nullptr) {
    const Node* log = c.chains.made_by(tanh->inputs[0], ops::Log, members);
    const Node* sum = log ? c.chains.made_by(log->inputs[0], ops::Add, members) : nullptr;
    const auto parts = sum ? c.chains.with_number(*sum) : std::nullopt;
    if (parts && parts->second == 1.0)
      inner = c.chains.made_by(parts->first, ops::Exp, members);
  }
  if (inner == nullptr || !c.chains.same(inner->inputs[0], c.x, members))
    return std::nullopt;
  return Found{OperatorRow::Chain::x_tanh_softplus};
}

} // namespace

bool recognise_activation(Chains& chains, std::size_t at) {
  const Node& result = chains.node(at);
  if (!result.domain.empty() || (result.op_type != ops::Mul && result.op_type != ops::Div))
    return false;
  Product product;
  Chains::Members members;
  factorise(chains, result.outputs[0], product, members, 0);
  if (product.factors.size() != 2)
    return false;
  using Pattern = std::optional<Found> (*)(const Candidate&, Chains::Members&);
  for (const Pattern pattern :
       {Pattern{silu}, Pattern{gelu}, Pattern{hard_swish}, Pattern{tanh_softplus}}) {
    for (const std::size_t first : {0U, 1U}) {
      const std::string& x = product.factors[first];
      const Value& in = chains.value(x);
      const Value& out = chains.value(result.outputs[0]);
      if (in.shape != out.shape || in.type != out.type)
        continue;
      Chains::Members all = members;
      const auto found = pattern({chains, product.number, x, product.factors[1 - first]}, all);
      if (!found || !chains.closed(all, at))
        continue;
      const OperatorRow& row = *std::ranges::find(all_rows(), found->chain, &OperatorRow::chain);
      chains.replace(at, all, {row.op_type, row.domain, {x}, found->attributes});
      return true;
    }
  }
  return false;
}

} // namespace monet::onnx_file
