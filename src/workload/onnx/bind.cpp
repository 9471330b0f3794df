// Binds symbolic dimensions of graph inputs to sizes from the options, before shapes are inferred.
#include "base/shared/text.hpp"
#include "workload/onnx/model.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::onnx_file {

namespace {

class Binder {
public:
  Binder(NetworkDraft& draft, const std::optional<std::int64_t>& batch)
      : draft_(draft), batch_(batch) {}

  /// Names of first axes denote the batch, wherever else they appear.
  void name_batch(const Declared& input) {
    if (!input.shape || input.shape->empty())
      return;
    const Dimension& first = input.shape->front();
    if (first.size || first.symbol.empty() || !batch_)
      return;
    draft_.dimensions.try_emplace(first.symbol, *batch_);
  }

  Integers shape_of(const Declared& input) {
    Integers shape;
    for (std::size_t i = 0; i < input.shape->size(); ++i) {
      const Dimension& dimension = (*input.shape)[i];
      std::optional<std::int64_t> size = dimension.size;
      const auto named = draft_.dimensions.find(dimension.symbol);
      if (!size && named != draft_.dimensions.end())
        size = named->second;
      if (!size && i == 0)
        size = batch_;
      if (!size) {
        complain(input, i);
        size = 1;
      } else if (*size < 0) {
        draft_.problems.add(at_tensor(draft_.model, input.name),
                            fmt::format("axis {} has size {}", i, *size));
        size = 1;
      }
      shape.push_back(*size);
    }
    return shape;
  }

private:
  void complain(const Declared& input, std::size_t axis) {
    const std::string& symbol = (*input.shape)[axis].symbol;
    const std::string what =
        symbol.empty() ? fmt::format("axis {} has no size", axis)
                       : fmt::format("dimension '{}' (axis {}) has no size", symbol, axis);
    std::string hint = "set the batch size (option batch, --batch)";
    if (axis > 0) {
      hint = symbol.empty() ? "export the network with a fixed size"
                            : fmt::format("set it in `dimensions: {{{}: ...}}`", symbol);
    }
    draft_.problems.add(at_tensor(draft_.model, input.name), what, hint);
  }

  NetworkDraft& draft_;
  const std::optional<std::int64_t>& batch_;
};

/// Reports a size whose dimension name matches no graph input and no result of data-dependent size:
/// the name is mistyped.
void require_known_names(NetworkDraft& draft) {
  const Model& model = draft.model;
  std::vector<std::string> names;
  for (const Declared& input : model.inputs) {
    if (!input.shape)
      continue;
    for (const Dimension& dimension : *input.shape) {
      if (!dimension.symbol.empty())
        names.push_back(dimension.symbol);
    }
  }
  for (const Node& node : model.nodes) {
    if (counts_by_data(node))
      names.push_back(node.outputs[0]);
  }
  for (const auto& [name, size] : draft.dimensions) {
    if (std::ranges::find(names, name) != names.end())
      continue;
    draft.problems.add({model.origin, 0, 0, {}},
                       fmt::format("no graph input has a dimension called '{}'", name),
                       nearest_name_hint(name, names));
  }
}

} // namespace

void bind_inputs(NetworkDraft& draft, const std::optional<std::int64_t>& batch,
                 const std::map<std::string, std::int64_t>& dimensions) {
  const Model& model = draft.model;
  draft.dimensions = dimensions;
  Binder binder(draft, batch);
  if (batch && *batch < 1)
    draft.problems.add({model.origin, 0, 0, {}},
                       fmt::format("a batch of {} is not possible", *batch));
  require_known_names(draft);
  for (const Declared& input : model.inputs)
    binder.name_batch(input);
  for (const Declared& input : model.inputs) {
    if (model.initializers.count(input.name) != 0)
      continue; // weights in files of IR version 3
    if (!input.type) {
      draft.problems.add(at_tensor(model, input.name),
                         "this graph input is not a tensor of a known element type");
      continue;
    }
    if (!input.shape) {
      draft.problems.add(at_tensor(model, input.name), "this graph input declares no shape",
                         "export the network with shapes");
      continue;
    }
    draft.values[input.name] = Value{*input.type, binder.shape_of(input), std::nullopt, false};
  }
}

} // namespace monet::onnx_file
