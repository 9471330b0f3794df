// Maps an operand of a loop nest to strides and bounds.
#include "execute/walk/operand.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>

namespace monet {

std::int64_t weighted_sum(std::span<const std::int64_t> weights,
                          std::span<const std::int64_t> numbers) {
  weights = weights.first(numbers.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    sum += weights[i] * numbers[i];
  return sum;
}

std::optional<std::int64_t> OperandMap::at(std::span<const std::int64_t> point) const {
  for (const AxisBound& bound : bounds) {
    const std::int64_t index = bound.offset + weighted_sum(bound.coefficients, point);
    if (index < 0 || index >= bound.extent)
      return std::nullopt;
  }
  return offset + weighted_sum(strides, point);
}

std::int64_t OperandMap::element(std::span<const std::int64_t> point, std::int64_t count) const {
  const std::int64_t element = at(point).value_or(-1);
  if (element < -1 || element >= count)
    internal_check(false, "an operand's element is outside of its tensor");
  return element;
}

std::size_t OperandMap::index(std::span<const std::int64_t> point) const {
  const std::optional<std::int64_t> element = at(point);
  if (!element)
    internal_check(false, "an operand's element is outside of its tensor");
  return static_cast<std::size_t>(*element);
}

void check_reach(const OperandMap& map, const LoopNest& nest, std::int64_t count) {
  if (!map.bounds.empty())
    return;
  std::int64_t low = map.offset;
  std::int64_t high = map.offset;
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    const std::int64_t reach =
        checked_multiply(map.strides[d], std::max<std::int64_t>(nest.dims[d].size, 1) - 1);
    std::int64_t& end = reach < 0 ? low : high;
    end = checked_add(end, reach);
  }
  internal_check(low >= 0 && high < count, "a loop leaves its tensor");
}

Integers strides_of(std::span<const std::int64_t> shape) {
  Integers strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

namespace {

/// The axis stays within [0, extent) whatever the loops are.
bool stays_inside(const LoopNest& nest, const AxisExpr& axis, std::int64_t extent) {
  std::int64_t low = axis.offset;
  std::int64_t high = axis.offset;
  for (const AffineTerm& term : axis.terms) {
    const std::int64_t reach = term.coefficient * (nest.dims[term.dim].size - 1);
    (reach < 0 ? low : high) += reach;
  }
  return low >= 0 && high < extent;
}

} // namespace

OperandMap map_operand(const LoopNest& nest, const Access& access,
                       std::span<const std::int64_t> shape,
                       std::span<const std::int64_t> axis_strides) {
  internal_check(!access.opaque, "an operand without a map cannot be walked");
  internal_check(access.axes.size() == shape.size(), "an access has other axes than its tensor");
  OperandMap map;
  map.strides.assign(nest.dims.size(), 0);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const AxisExpr& axis = access.axes[i];
    internal_check(!axis.data_dependent, "an operand indexed by data cannot be walked");
    map.offset += axis_strides[i] * axis.offset;
    for (const AffineTerm& term : axis.terms)
      map.strides[term.dim] += axis_strides[i] * term.coefficient;
    if (stays_inside(nest, axis, shape[i]))
      continue;
    AxisBound bound{axis.offset, shape[i], Integers(nest.dims.size(), 0)};
    for (const AffineTerm& term : axis.terms)
      bound.coefficients[term.dim] += term.coefficient;
    map.bounds.push_back(std::move(bound));
  }
  return map;
}

OperandIndex index_operands(const Operator& op) {
  OperandIndex index;
  std::vector<bool> taken(op.nest.operands.size(), false);
  const auto take = [&](TensorId tensor, bool read) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const Access& access = op.nest.operands[i];
      if (taken[i] || access.tensor != tensor || (access.mode == AccessMode::read) != read)
        continue;
      taken[i] = true;
      return i;
    }
    return std::nullopt;
  };
  for (const auto& output : op.outputs)
    index.outputs.push_back(output ? take(*output, false) : std::nullopt);
  for (const auto& input : op.inputs)
    index.inputs.push_back(input ? take(*input, true) : std::nullopt);
  return index;
}

bool next_point(Integers& point, std::span<const std::int64_t> sizes) {
  if (sizes.size() != point.size())
    internal_check(false, "a point has other axes than there are");
  auto size = sizes.rbegin(); // iterators: this is in every inner loop
  for (auto at = point.rbegin(); at != point.rend(); ++at, ++size) {
    if (++*at < *size)
      return true;
    *at = 0;
  }
  return false;
}

std::int64_t nonzeros(std::span<const float> numbers) {
  return std::ssize(numbers) - std::ranges::count(numbers, 0.0F);
}

} // namespace monet
