// Loop nests of operators and the boxes of tensor elements that ranges of their loops access.
// Tiling and cost models use them.
#include "monet/workload/loop_nest.hpp"

#include "base/shared/checked.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

std::int64_t iterations(const LoopNest& nest) {
  std::int64_t product = 1;
  for (const LoopDim& dim : nest.dims)
    product = checked_multiply(product, dim.size);
  return product;
}

LoopNest product_nest(const LoopNest& nest, const NestProduct& product) {
  LoopNest alone{nest.compute, nest.dims, {}, nest.work, {}};
  const auto add = [&](std::optional<std::uint32_t> operand, const char* role) {
    alone.operands.push_back(nest.operands.at(operand.value()));
    alone.operands.back().role = role;
  };
  add(product.result, "O");
  add(product.first, "I");
  add(product.second, "W");
  return alone;
}

std::int64_t products(const LoopNest& nest) {
  return std::max<std::int64_t>(1, std::ssize(nest.products));
}

std::vector<std::size_t> multiplied_operands(const LoopNest& nest) {
  std::vector<std::size_t> found;
  if (nest.compute != ComputeKind::mac)
    return found;
  constexpr std::size_t kFactors = 2;
  for (std::size_t i = 0; i < nest.operands.size(); ++i) {
    const auto is_factor = [&](const NestProduct& product) {
      return product.first == i || product.second == i;
    };
    const bool multiplied = nest.products.empty() ? found.size() < kFactors
                                                  : std::ranges::any_of(nest.products, is_factor);
    if (multiplied && nest.operands[i].mode == AccessMode::read)
      found.push_back(i);
  }
  return found;
}

std::int64_t body_count(const LoopNest& nest) {
  return checked_multiply(iterations(nest), products(nest));
}

std::int64_t macs(const LoopNest& nest) {
  return nest.compute == ComputeKind::mac ? body_count(nest) : 0;
}

bool is_reduction(const LoopNest& nest, std::size_t dim) {
  for (const Access& operand : nest.operands) {
    if (operand.mode == AccessMode::read)
      continue;
    for (const AxisExpr& axis : operand.axes) {
      for (const AffineTerm& term : axis.terms) {
        if (term.dim == dim)
          return false;
      }
    }
  }
  return true;
}

const Access* written_access(const LoopNest& nest, TensorId tensor) {
  const auto found = std::ranges::find_if(nest.operands, [&](const Access& access) {
    return access.tensor == tensor && access.mode != AccessMode::read;
  });
  return found != nest.operands.end() ? &*found : nullptr;
}

std::size_t find_dim(const LoopNest& nest, std::string_view name) {
  const auto found =
      std::ranges::find_if(nest.dims, [&](const LoopDim& dim) { return dim.name == name; });
  return static_cast<std::size_t>(found - nest.dims.begin());
}

bool has_loop(const AxisExpr& axis, std::size_t dim) {
  return std::ranges::find(axis.terms, dim, &AffineTerm::dim) != axis.terms.end();
}

Interval axis_range(const AxisExpr& axis, std::span<const Interval> tile, std::int64_t extent) {
  if (axis.data_dependent)
    return {0, extent};
  std::int64_t low = axis.offset;
  std::int64_t high = axis.offset; // inclusive
  for (const AffineTerm& term : axis.terms) {
    const Interval range = tile[term.dim];
    if (range.empty())
      return {0, 0};
    const std::int64_t at_begin = term.coefficient * range.begin;
    const std::int64_t at_last = term.coefficient * (range.end - 1);
    low += std::min(at_begin, at_last);
    high += std::max(at_begin, at_last);
  }
  return intersect({low, high + 1}, {0, extent});
}

Box region(const Access& access, std::span<const Interval> tile,
           std::span<const std::int64_t> shape) {
  Box box;
  region_into(access, tile, shape, box);
  return box;
}

void region_into(const Access& access, std::span<const Interval> tile,
                 std::span<const std::int64_t> shape, Box& box) {
  box.resize(shape.size());
  auto side = box.begin(); // iterators, since inner loops call this
  if (access.opaque) {
    for (const std::int64_t extent : shape)
      *side++ = {0, extent};
    return;
  }
  auto extent = shape.begin();
  for (const AxisExpr& axis : std::span(access.axes).first(shape.size()))
    *side++ = axis_range(axis, tile, *extent++);
}

std::vector<Interval> full_tile(const LoopNest& nest) {
  std::vector<Interval> tile;
  tile.reserve(nest.dims.size());
  for (const LoopDim& dim : nest.dims)
    tile.push_back({0, dim.size});
  return tile;
}

std::string to_string(const AxisExpr& axis, std::span<const LoopDim> dims) {
  if (axis.data_dependent)
    return "?";
  std::string text;
  for (const AffineTerm& term : axis.terms) {
    const bool negative = term.coefficient < 0;
    if (text.empty()) {
      text = negative ? "-" : "";
    } else {
      text += negative ? " - " : " + ";
    }
    const std::int64_t size = negative ? -term.coefficient : term.coefficient;
    if (size != 1)
      text += fmt::format("{}*", size);
    text += dims[term.dim].name;
  }
  if (text.empty())
    return fmt::format("{}", axis.offset);
  if (axis.offset != 0) {
    text += fmt::format(" {} {}", axis.offset < 0 ? '-' : '+',
                        axis.offset < 0 ? -axis.offset : axis.offset);
  }
  return text;
}

} // namespace monet
