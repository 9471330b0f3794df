#include "training/evaluator.hpp"

#include "training/scalar_functions.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

namespace monet {

namespace {

using Shape = std::vector<std::int64_t>;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Calls body(multi-index, flat index) for every element.
template <class Body>
void for_each(const Shape& shape, Body&& body) {
  const std::int64_t total =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  Shape index(shape.size(), 0);
  for (std::int64_t flat = 0; flat < total; ++flat) {
    body(index, at(flat));
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

std::size_t flat(const Shape& index, const Shape& shape) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    position = position * shape[d] + index[d];
  return at(position);
}

/// Flat position of an operand broadcast, numpy's way, to `index`.
std::size_t broadcast(const Shape& index, const Shape& shape) {
  Shape own(shape.size());
  const std::size_t skipped = index.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d)
    own[d] = shape[d] == 1 ? 0 : index[skipped + d];
  return flat(own, shape);
}

} // namespace

Evaluator::Evaluator(const Graph& graph) : graph_(&graph), values_(graph.tensors().size()) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& known = graph.tensors()[i].values;
    if (!known)
      continue;
    std::visit([&](const auto& list) { values_[i].assign(list.begin(), list.end()); }, *known);
  }
}

void Evaluator::run(std::span<const Phase> phases) {
  for (const Operator& op : graph_->operators()) {
    if (std::find(phases.begin(), phases.end(), op.phase) != phases.end())
      run(op);
  }
}

Values& Evaluator::out(const Operator& op, std::size_t i) {
  Values& values = values_[op.outputs.at(i).value().index()];
  values.assign(at(element_count(tensor(op.outputs[i]))), 0.0);
  return values;
}

std::vector<std::int64_t> Evaluator::ints(const Operator& op, std::size_t i) const {
  return std::get<std::vector<std::int64_t>>(tensor(op.inputs.at(i)).values.value());
}

void Evaluator::run(const Operator& op) {
  if (op.nest.compute == ComputeKind::mac) {
    run_product(op);
    return;
  }
  const bool done = run_scalar(op) || run_normalisation(op) || run_row(op) || run_loss(op) ||
                    run_rearrangement(op) || run_indexed(op);
  internal_check(done, "the test evaluator does not know " + op.op_type);
}

void Evaluator::run_nest(const Operator& op, const Body& body) {
  std::vector<double> inputs(op.inputs.size());
  std::vector<double> outputs(op.outputs.size());
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i])
      out(op, i);
  }
  Shape sizes;
  for (const LoopDim& dim : op.nest.dims)
    sizes.push_back(dim.size);
  const auto locate = [&](const Access& access, const Shape& loops) -> std::optional<std::size_t> {
    const Shape& shape = graph_->tensor(access.tensor).shape;
    Shape index(shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      index[d] = access.axes[d].offset;
      for (const AffineTerm& term : access.axes[d].terms)
        index[d] += term.coefficient * loops[term.dim];
      if (index[d] < 0 || index[d] >= shape[d])
        return std::nullopt;
    }
    return flat(index, shape);
  };
  for_each(sizes, [&](const Shape& loops, std::size_t) {
    for (const Access& access : op.nest.operands) {
      if (access.mode != AccessMode::read)
        continue;
      const auto where = locate(access, loops);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (op.inputs[i] == access.tensor)
          inputs[i] = where ? values_[access.tensor.index()][*where] : 0.0;
      }
    }
    std::fill(outputs.begin(), outputs.end(), 0.0);
    body(inputs, outputs);
    for (const Access& access : op.nest.operands) {
      if (access.mode == AccessMode::read)
        continue;
      const auto where = locate(access, loops);
      for (std::size_t i = 0; where && i < outputs.size(); ++i) {
        if (op.outputs[i] == access.tensor)
          values_[access.tensor.index()][*where] += outputs[i];
      }
    }
  });
}

/// The first two inputs are multiplied; a third is a bias, added once.
void Evaluator::run_product(const Operator& op) {
  run_nest(op, [](auto v, auto y) { y[0] = v[0] * v[1]; });
  if (op.inputs.size() < 3 || !op.inputs[2])
    return;
  const Shape& bias_shape = tensor(op.inputs[2]).shape;
  Values& result = values_[op.outputs[0]->index()];
  for_each(tensor(op.outputs[0]).shape, [&](const Shape& index, std::size_t i) {
    const bool conv = op.op_type == "Conv";
    result[i] += in(op, 2)[conv ? at(index[1]) : broadcast(index, bias_shape)];
  });
}

bool Evaluator::run_scalar(const Operator& op) {
  if (const auto known = kScalars.find(op.op_type); known != kScalars.end()) {
    run_nest(op, [&](auto v, auto y) { y[0] = known->second(v, op.attributes); });
    return true;
  }
  if (op.op_type == "MulGrad") {
    run_nest(op, [](auto v, auto y) {
      y[0] = v.size() > 2 ? v[0] * v[2] : 0;
      if (y.size() > 1)
        y[1] = v[0] * v[1];
    });
  } else if (op.op_type == "DivGrad") {
    run_nest(op, [](auto v, auto y) {
      y[0] = v[0] / v[2];
      if (y.size() > 1)
        y[1] = -v[0] * v[1] / (v[2] * v[2]);
    });
  } else if (op.op_type == "WhereGrad") {
    run_nest(op, [](auto v, auto y) {
      y[0] = v[1] != 0 ? v[0] : 0;
      if (y.size() > 1)
        y[1] = v[1] != 0 ? 0 : v[0];
    });
  } else if (op.op_type == "ReduceMean" || op.op_type == "GlobalAveragePool") {
    const auto count = static_cast<double>(element_count(tensor(op.inputs[0]))) /
                       static_cast<double>(element_count(tensor(op.outputs[0])));
    run_nest(op, [&](auto v, auto y) { y[0] = v[0] / count; });
  } else if (op.op_type == "AveragePool" || op.op_type == "AveragePoolGrad") {
    double count = 1;
    for (const std::int64_t k : op.attributes.integers("kernel_shape"))
      count *= static_cast<double>(k);
    run_nest(op, [&](auto v, auto y) { y[0] = v[0] / count; });
  } else {
    return false;
  }
  return true;
}

/// Groups of elements that share statistics: a channel, or a row.
struct Evaluator::Groups {
  const Shape& shape;
  bool batch;

  std::size_t count() const {
    const std::size_t total = flat_size();
    return batch ? at(shape[1]) : total / at(shape.back());
  }
  std::size_t flat_size() const {
    return at(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
  }
  double size() const { return static_cast<double>(flat_size()) / static_cast<double>(count()); }
  std::size_t group(const Shape& index, std::size_t i) const {
    return batch ? at(index[1]) : i / at(shape.back());
  }
  std::size_t feature(const Shape& index) const { return at(batch ? index[1] : index.back()); }
};

bool Evaluator::run_normalisation(const Operator& op) {
  const bool batch = op.op_type.starts_with("Batch");
  if (!batch && !op.op_type.starts_with("Layer"))
    return false;
  const Groups groups{tensor(op.inputs[0]).shape, batch};
  if (op.op_type.find("Grad") == std::string::npos)
    normalise(op, groups);
  else
    normalise_backward(op, groups);
  return true;
}

void Evaluator::normalise(const Operator& op, const Groups& groups) {
  const Values& x = in(op, 0);
  const double m = groups.size();
  Values mean(groups.count()), inverse(groups.count());
  for_each(groups.shape,
           [&](const Shape& k, std::size_t i) { mean[groups.group(k, i)] += x[i] / m; });
  for_each(groups.shape, [&](const Shape& k, std::size_t i) {
    const double d = x[i] - mean[groups.group(k, i)];
    inverse[groups.group(k, i)] += d * d / m;
  });
  for (double& v : inverse)
    v = 1 / std::sqrt(v + op.attributes.number("epsilon", 1e-5));
  Values& y = out(op, 0);
  for_each(groups.shape, [&](const Shape& k, std::size_t i) {
    const std::size_t g = groups.group(k, i);
    y[i] =
        (x[i] - mean[g]) * inverse[g] * in(op, 1)[groups.feature(k)] + in(op, 2)[groups.feature(k)];
  });
  const std::size_t saved = groups.batch ? 3 : 1;
  if (op.outputs.size() > saved + 1) {
    out(op, saved) = mean;
    out(op, saved + 1) = inverse;
  }
}

/// Uses the statistics that the graph hands over, so that saving wrong ones shows.
void Evaluator::normalise_backward(const Operator& op, const Groups& groups) {
  const bool weights_only = op.op_type == "LayerNormGradWeight";
  const Values& dy = in(op, 0);
  const Values& x = in(op, 1);
  const Values& mean = in(op, weights_only ? 2 : 3);
  const Values& inverse = in(op, weights_only ? 3 : 4);
  const auto xhat = [&](const Shape& k, std::size_t i) {
    return (x[i] - mean[groups.group(k, i)]) * inverse[groups.group(k, i)];
  };
  const std::size_t scale = groups.batch ? 1 : 0;
  for (std::size_t o = scale; (groups.batch || weights_only) && o < op.outputs.size(); ++o) {
    if (!op.outputs[o])
      continue;
    Values& sum = out(op, o);
    for_each(groups.shape, [&](const Shape& k, std::size_t i) {
      sum[groups.feature(k)] += o == scale ? dy[i] * xhat(k, i) : dy[i];
    });
  }
  if (weights_only || !op.outputs[0])
    return;
  const double m = groups.size();
  Values sum(groups.count()), sum_xhat(groups.count());
  const auto scaled = [&](const Shape& k, std::size_t i) {
    return dy[i] * in(op, 2)[groups.feature(k)];
  };
  for_each(groups.shape, [&](const Shape& k, std::size_t i) {
    sum[groups.group(k, i)] += scaled(k, i) / m;
    sum_xhat[groups.group(k, i)] += scaled(k, i) * xhat(k, i) / m;
  });
  Values& dx = out(op, 0);
  for_each(groups.shape, [&](const Shape& k, std::size_t i) {
    const std::size_t g = groups.group(k, i);
    dx[i] = inverse[g] * (scaled(k, i) - sum[g] - xhat(k, i) * sum_xhat[g]);
  });
}

/// Softmax family along the last axis.
bool Evaluator::run_row(const Operator& op) {
  if (op.op_type.find("oftmax") == std::string::npos || op.op_type.starts_with("SoftmaxCross"))
    return false;
  const Values& a = in(op, 0);
  Values& y = out(op, 0);
  const std::size_t width = at(tensor(op.inputs[0]).shape.back());
  for (std::size_t row = 0; row < a.size(); row += width) {
    double sum = 0;
    for (std::size_t i = row; i < row + width; ++i) {
      if (op.op_type == "SoftmaxGrad")
        sum += a[i] * in(op, 1)[i];
      else if (op.op_type == "LogSoftmaxGrad")
        sum += a[i];
      else
        sum += std::exp(a[i]);
    }
    for (std::size_t i = row; i < row + width; ++i) {
      if (op.op_type == "Softmax")
        y[i] = std::exp(a[i]) / sum;
      else if (op.op_type == "LogSoftmax")
        y[i] = a[i] - std::log(sum);
      else if (op.op_type == "SoftmaxGrad")
        y[i] = in(op, 1)[i] * (a[i] - sum);
      else
        y[i] = a[i] - std::exp(in(op, 1)[i]) * sum;
    }
  }
  return true;
}

bool Evaluator::run_loss(const Operator& op) {
  if (op.inputs.size() < 2 || tensor(op.inputs[0]).shape.empty())
    return false;
  const Values& a = in(op, 0);
  const Values& t = in(op, 1);
  const double n = static_cast<double>(t.size());
  const std::size_t classes = at(tensor(op.inputs[0]).shape.back());
  if (op.op_type == "NegativeLogLikelihoodLoss") {
    double& loss = out(op, 0)[0];
    for (std::size_t i = 0; i < t.size(); ++i)
      loss -= a[i * classes + static_cast<std::size_t>(t[i])] / n;
  } else if (op.op_type == "SoftmaxCrossEntropyGrad") {
    Values& dx = out(op, 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool hit = i % classes == static_cast<std::size_t>(t[i / classes]);
      dx[i] = (std::exp(a[i]) - (hit ? 1 : 0)) / n;
    }
  } else if (op.op_type == "MseLoss") {
    run_nest(op, [&](auto v, auto y) { y[0] = (v[0] - v[1]) * (v[0] - v[1]) / n; });
  } else if (op.op_type == "MseLossGrad") {
    run_nest(op, [&](auto v, auto y) { y[0] = 2 * (v[0] - v[1]) / n; });
  } else if (op.op_type == "BceWithLogitsLoss") {
    run_nest(op, [&](auto v, auto y) { y[0] = (std::log1p(std::exp(v[0])) - v[0] * v[1]) / n; });
  } else if (op.op_type == "BceWithLogitsLossGrad") {
    run_nest(op, [&](auto v, auto y) { y[0] = (sigmoid(v[0]) - v[1]) / n; });
  } else {
    return false;
  }
  return true;
}

bool Evaluator::run_rearrangement(const Operator& op) {
  constexpr std::array<std::string_view, 6> kSame{"Reshape", "Flatten",   "Identity",
                                                  "Squeeze", "Unsqueeze", "Cast"};
  const Shape& from = tensor(op.inputs[0]).shape;
  const Shape& to = tensor(op.outputs[0]).shape;
  if (std::find(kSame.begin(), kSame.end(), op.op_type) != kSame.end()) {
    const Values copy = in(op, 0);
    out(op, 0) = copy;
  } else if (op.op_type == "Transpose") {
    const Shape order = op.attributes.integers("perm");
    Values& y = out(op, 0);
    for_each(to, [&](const Shape& index, std::size_t i) {
      Shape source(index.size());
      for (std::size_t d = 0; d < index.size(); ++d)
        source[at(order[d])] = index[d];
      y[i] = in(op, 0)[flat(source, from)];
    });
  } else if (op.op_type == "Expand") {
    Values& y = out(op, 0);
    for_each(to, [&](const Shape& k, std::size_t i) { y[i] = in(op, 0)[broadcast(k, from)]; });
  } else {
    return run_window(op) || run_parts(op);
  }
  return true;
}

/// Slice and Pad: the source is the index shifted; outside it is zero.
bool Evaluator::run_window(const Operator& op) {
  const bool pad = op.op_type == "Pad";
  if (!pad && op.op_type != "Slice")
    return false;
  const Shape& from = tensor(op.inputs[0]).shape;
  Shape shift(from.size(), 0);
  const Shape first = ints(op, 1);
  const Shape axes = !pad && op.inputs.size() > 3 ? ints(op, 3) : Shape{};
  for (std::size_t i = 0; i < (pad ? from.size() : first.size()); ++i)
    shift[axes.empty() ? i : at(axes[i])] = pad ? -first[i] : first[i];
  Values& y = out(op, 0);
  for_each(tensor(op.outputs[0]).shape, [&](const Shape& index, std::size_t i) {
    Shape source = index;
    bool inside = true;
    for (std::size_t d = 0; d < source.size(); ++d) {
      source[d] += shift[d];
      inside = inside && source[d] >= 0 && source[d] < from[d];
    }
    y[i] = inside ? in(op, 0)[flat(source, from)] : 0.0;
  });
  return true;
}

/// Concat and Split.
bool Evaluator::run_parts(const Operator& op) {
  const bool split = op.op_type == "Split";
  if (!split && op.op_type != "Concat")
    return false;
  const Shape whole = tensor(split ? op.inputs[0] : op.outputs[0]).shape;
  const auto axis = op.attributes.integer("axis", 0);
  const std::size_t a = at(axis < 0 ? axis + static_cast<std::int64_t>(whole.size()) : axis);
  const std::size_t parts = split ? op.outputs.size() : op.inputs.size();
  std::int64_t start = 0;
  if (!split)
    out(op, 0);
  for (std::size_t p = 0; p < parts; ++p) {
    const Shape shape = tensor(split ? op.outputs[p] : op.inputs[p]).shape;
    if (split)
      out(op, p);
    for_each(shape, [&](const Shape& index, std::size_t i) {
      Shape full = index;
      full[a] += start;
      Values& y = values_[op.outputs[split ? p : 0]->index()];
      (split ? y[i] : y[flat(full, whole)]) = split ? in(op, 0)[flat(full, whole)] : in(op, p)[i];
    });
    start += shape[a];
  }
  return true;
}

/// Gather on axis 0, its gradient, and max pooling in square windows without padding.
bool Evaluator::run_indexed(const Operator& op) {
  const Shape& from = tensor(op.inputs[0]).shape;
  if (op.op_type == "Gather") {
    const auto row = at(element_count(tensor(op.inputs[0])) / from[0]);
    Values& y = out(op, 0);
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = in(op, 0)[static_cast<std::size_t>(in(op, 1)[i / row]) * row + i % row];
  } else if (op.op_type == "GatherGrad") {
    Values& dx = out(op, 0);
    const auto row = dx.size() / at(tensor(op.outputs[0]).shape[0]);
    for (std::size_t i = 0; i < in(op, 0).size(); ++i)
      dx[static_cast<std::size_t>(in(op, 1)[i / row]) * row + i % row] += in(op, 0)[i];
  } else if (op.op_type == "MaxPool") {
    const auto k = op.attributes.integers("kernel_shape")[0];
    Values& y = out(op, 0);
    Values& chosen = out(op, 1);
    for_each(tensor(op.outputs[0]).shape, [&](const Shape& index, std::size_t i) {
      y[i] = -1e300;
      for (std::int64_t f = 0; f < k * k; ++f) {
        const std::size_t j =
            flat({index[0], index[1], index[2] * k + f / k, index[3] * k + f % k}, from);
        if (in(op, 0)[j] <= y[i])
          continue;
        y[i] = in(op, 0)[j];
        chosen[i] = static_cast<double>(j);
      }
    });
  } else if (op.op_type == "MaxPoolGrad") {
    Values& dx = out(op, 0);
    for (std::size_t i = 0; i < in(op, 0).size(); ++i)
      dx[static_cast<std::size_t>(in(op, 1)[i])] += in(op, 0)[i];
  } else {
    return false;
  }
  return true;
}

} // namespace monet
