// Checks relations between operand shapes that nests cannot prove; registry.cpp calls it for each
// operator.
#include "base/shared/checked.hpp"
#include "workload/operators/families.hpp"
#include "workload/operators/view_map.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

using Shape = Integers;

std::string text_of(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void expect(const Graph& graph, const Operator& op, bool holds, std::string_view what,
            std::string_view detail = {}) {
  if (!holds)
    fail(graph, op, what, detail);
}

void expect_shape(const Graph& graph, const Operator& op, const Shape& found, const Shape& expected,
                  std::string_view detail) {
  if (found != expected)
    fail(graph, op,
         fmt::format("{} is its shape, {} is expected", text_of(found), text_of(expected)), detail);
}

// --- views ---

/// Checks that start + step * i is within the input for every output index i.
void check_slice(const Graph& graph, const Operator& op, const ViewStep& step, const Shape& in,
                 const Shape& out, std::string_view detail) {
  expect(graph, op, in.size() == out.size(), "its axes are not those of the input", detail);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::int64_t last =
        checked_add(step.starts[i], checked_multiply(step.steps[i], out[i] - 1));
    expect(graph, op, step.starts[i] >= 0 && step.starts[i] < in[i] && last >= 0 && last < in[i],
           fmt::format("elements {} to {} of an axis of {} are requested", step.starts[i], last,
                       in[i]),
           detail);
  }
}

void check_expand(const Graph& graph, const Operator& op, const Shape& in, const Shape& out) {
  expect(graph, op, in.size() <= out.size(), "the output has fewer axes than the input");
  const std::size_t skipped = out.size() - in.size();
  for (std::size_t i = 0; i < in.size(); ++i)
    expect(graph, op, in[i] == 1 || in[i] == out[skipped + i],
           fmt::format("a size of {} does not broadcast to {}", in[i], out[skipped + i]));
}

void check_transpose(const Graph& graph, const Operator& op, const ViewStep& step, const Shape& in,
                     const Shape& out) {
  Shape expected;
  for (const std::int64_t from : step.perm)
    expected.push_back(in[static_cast<std::size_t>(from)]);
  expect_shape(graph, op, out, expected, "output 0");
}

// --- partitioned, concatenated and padded ---

void check_padding(const Graph& graph, const Operator& op, const Shape& inside, const Shape& padded,
                   const Shape& pads) {
  constexpr std::array<std::string_view, 4> modes{"constant", "edge", "reflect", "wrap"};
  const std::string mode = op.attributes.text("mode", "constant");
  expect(graph, op, std::ranges::find(modes, mode) != modes.end(),
         fmt::format("'{}' is not a padding mode", mode), "attribute 'mode'");
  const std::size_t rank = inside.size();
  expect(graph, op, pads.size() == 2 * rank && padded.size() == rank,
         "two pads for every axis are expected");
  Shape expected = inside;
  for (std::size_t i = 0; i < rank; ++i)
    expected[i] = checked_add(inside[i], checked_add(pads[i], pads[rank + i]));
  expect_shape(graph, op, padded, expected, "the padded tensor");
}

// --- indexed ---

/// Checks operators with index vectors along the last axis of `indices`. They index the data's axes
/// after `batch_dims` common axes; the remaining axes of the data follow in `picked`.
void check_slices(const Graph& graph, const Operator& op, const Shape& data, const Shape& indices,
                  const Shape& picked) {
  const std::int64_t batch_dims = op.attributes.integer("batch_dims", 0);
  const auto rank = static_cast<std::int64_t>(std::min(data.size(), indices.size()));
  expect(graph, op, batch_dims >= 0 && batch_dims < rank, "it leaves no axis",
         "attribute 'batch_dims'");
  const auto batch = static_cast<std::size_t>(batch_dims);
  const auto room = static_cast<std::int64_t>(data.size() - batch);
  expect(graph, op, indices.back() >= 1 && indices.back() <= room,
         fmt::format("{} axes of {} are indexed", indices.back(), room), "input 1");
  expect(
      graph, op,
      std::equal(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(batch), indices.begin()),
      "its first axes are not those of the data", "input 1");
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(),
                  data.begin() + static_cast<std::ptrdiff_t>(batch) + indices.back(), data.end());
  expect_shape(graph, op, picked, expected, "what is picked");
}

} // namespace

/// Checks views and Copy, each output separately.
void check_views(const Graph& graph, const Operator& op) {
  const Shape& in = input_shape(graph, op, 0);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (!op.outputs[i])
      continue;
    const Shape& out = output_shape(graph, op, i);
    const std::string detail = fmt::format("output {}", i);
    const auto step = view_step(graph, op, i);
    if (!step)
      fail(graph, op, "what it reads depends on data, or does not fit its input", detail);
    switch (step->kind) {
    case ViewStep::Kind::reshape:
      expect(graph, op, checked_product(in) == checked_product(out),
             fmt::format("{} has other elements than the input's {}", text_of(out), text_of(in)),
             detail);
      break;
    case ViewStep::Kind::transpose:
      check_transpose(graph, op, *step, in, out);
      break;
    case ViewStep::Kind::slice:
      check_slice(graph, op, *step, in, out, detail);
      break;
    case ViewStep::Kind::expand:
      check_expand(graph, op, in, out);
      break;
    }
  }
}

void check_concat(const Graph& graph, const Operator& op) {
  Shape joined = input_shape(graph, op, 0);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 0), joined.size());
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    Shape part = input_shape(graph, op, i);
    expect(graph, op, part.size() == joined.size(), "it has other axes than input 0",
           fmt::format("input {}", i));
    joined[at] = checked_add(joined[at], part[at]);
    part[at] = joined[at];
    expect_shape(graph, op, part, joined, fmt::format("input {}", i));
  }
  expect_shape(graph, op, output_shape(graph, op, 0), joined, "output 0");
}

void check_pad(const Graph& graph, const Operator& op) {
  const auto pads = known_integers(graph, op, 1);
  expect(graph, op, pads.has_value(), "constants are expected", "input 1");
  check_padding(graph, op, input_shape(graph, op, 0), output_shape(graph, op, 0), *pads);
}

void check_pad_grad(const Graph& graph, const Operator& op) {
  check_padding(graph, op, output_shape(graph, op, 0), input_shape(graph, op, 0),
                op.attributes.integers("pads"));
}

void check_slice_grad(const Graph& graph, const Operator& op) {
  const ViewStep step{
      ViewStep::Kind::slice, {}, op.attributes.integers("starts"), op.attributes.integers("steps")};
  const Shape& dy = input_shape(graph, op, 0);
  expect(graph, op, step.starts.size() == dy.size() && step.steps.size() == dy.size(),
         "one start and one step per axis are expected");
  check_slice(graph, op, step, output_shape(graph, op, 0), dy, "output 0");
}

void check_trilu(const Graph& graph, const Operator& op) {
  expect(graph, op, input_shape(graph, op, 0).size() >= 2, "a matrix is expected", "input 0");
}

void check_one_hot(const Graph& graph, const Operator& op) {
  expect_shape(graph, op, input_shape(graph, op, 2), {2}, "input 2");
}

void check_gather_nd(const Graph& graph, const Operator& op) {
  check_slices(graph, op, input_shape(graph, op, 0), input_shape(graph, op, 1),
               output_shape(graph, op, 0));
}

void check_gather_nd_grad(const Graph& graph, const Operator& op) {
  check_slices(graph, op, output_shape(graph, op, 0), input_shape(graph, op, 1),
               input_shape(graph, op, 0));
}

void check_scatter_nd(const Graph& graph, const Operator& op) {
  check_slices(graph, op, input_shape(graph, op, 0), input_shape(graph, op, 1),
               input_shape(graph, op, 2));
}

void check_scatter_elements(const Graph& graph, const Operator& op) {
  const Shape& data = input_shape(graph, op, 0);
  const Shape& updates = input_shape(graph, op, 2);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 0), data.size());
  expect_shape(graph, op, input_shape(graph, op, 1), updates, "input 1");
  expect(graph, op, updates.size() == data.size(), "it has other axes than the data", "input 2");
  for (std::size_t i = 0; i < data.size(); ++i)
    expect(graph, op, i == at || updates[i] <= data[i],
           fmt::format("axis {} has {} elements, the data {}", i, updates[i], data[i]), "input 2");
}

void check_reverse_sequence(const Graph& graph, const Operator& op) {
  const Shape& data = input_shape(graph, op, 0);
  const std::size_t batch =
      normal_axis(graph, op, op.attributes.integer("batch_axis", 1), data.size());
  const std::size_t time =
      normal_axis(graph, op, op.attributes.integer("time_axis", 0), data.size());
  expect(graph, op, batch != time, "the axes of time and batch are one");
  expect_shape(graph, op, input_shape(graph, op, 1), {data[batch]}, "input 1");
  expect_shape(graph, op, output_shape(graph, op, 0), data, "output 0");
}

void check_top_k(const Graph& graph, const Operator& op) {
  const Shape& data = input_shape(graph, op, 0);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", -1), data.size());
  Shape expected = data;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (!op.outputs[i])
      continue;
    const Shape& chosen = output_shape(graph, op, i);
    if (chosen.size() == data.size())
      expected[at] = std::min(chosen[at], expected[at]);
    expect_shape(graph, op, chosen, expected, fmt::format("output {}", i));
  }
}

/// Checks (dY, operands) -> gradients of some of the operands.
void check_gradients(const Graph& graph, const Operator& op) {
  expect(graph, op, op.outputs.size() < op.inputs.size(), "it has more gradients than operands");
}

/// Checks the inputs (dY, B), (dY, A, B) or (dY, omitted, B).
void check_product_gradients(const Graph& graph, const Operator& op) {
  expect(graph, op, op.inputs.size() > 1 && op.inputs.back(), "it reads no factor");
}

} // namespace monet
