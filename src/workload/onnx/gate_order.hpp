// Exporters reorder the gates of a recurrent layer: what ONNX reads is sliced out of the program's
// own weight and joined again. The layer is unrolled with that weight as it lies, so that it stays
// the weight of its products.
#pragma once

#include "workload/onnx/model.hpp"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace monet::onnx_file {

/// A tensor of [gates * H, ...] rows that is one parameter with its blocks of H rows in another
/// order.
struct GateSource {
  std::string parameter;
  Integers place; ///< by ONNX's gate: which of the parameter's blocks it is

  friend bool operator==(const GateSource&, const GateSource&) = default;
};

class GateSources {
public:
  GateSources(const Model& model, const Values& values);

  /// Of every direction of an input [directions, parts * gates * hidden, ...] of a recurrent layer:
  /// its `parts` parameters one after the other (a bias has two). Nullopt where one is none, or was
  /// more than reordered.
  std::optional<std::vector<std::vector<GateSource>>> of(const std::string& input,
                                                         std::int64_t directions, int parts,
                                                         std::int64_t gates,
                                                         std::int64_t hidden) const;

private:
  /// Rows [from, from + count) of a tensor that no node makes.
  struct Rows {
    std::string tensor;
    std::int64_t from = 0;
    std::int64_t count = 0;
  };

  const Node* maker(const std::string& name) const;
  std::optional<Integers> integers(const Node& node, std::size_t input) const;
  /// What is left without a leading axis of one element.
  std::optional<std::string> below_unsqueeze(const std::string& name) const;
  bool add_rows(const std::string& name, int depth, std::vector<Rows>& rows) const;
  bool add_slice(const Node& node, int depth, std::vector<Rows>& rows) const;
  std::optional<GateSource> source(const std::vector<Rows>& rows, std::int64_t first,
                                   std::int64_t gates, std::int64_t hidden) const;

  const Values& values_;
  std::unordered_map<std::string_view, const Node*> makers_;
};

} // namespace monet::onnx_file
