// Detects gates of a recurrent layer that an exporter reordered: ONNX's weight is then sliced from
// the program's weight and concatenated again. The layer is unrolled with the original weight,
// which remains the weight of its products.
#pragma once

#include "workload/onnx/model.hpp"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace monet::onnx_file {

/// Tensor of [gates * H, ...] rows that is one parameter with its blocks of H rows reordered.
struct GateSource {
  std::string parameter;
  Integers place; ///< parameter's block for each gate, by ONNX's gate index

  friend bool operator==(const GateSource&, const GateSource&) = default;
};

class GateSources {
public:
  GateSources(const Model& model, const Values& values);

  /// Finds the sources of a recurrent layer's input [directions, parts * gates * hidden, ...].
  /// Returns `parts` parameters per direction (a bias has two), or nullopt if a source is not a
  /// parameter with its gates reordered only.
  std::optional<std::vector<std::vector<GateSource>>> of(const std::string& input,
                                                         std::int64_t directions, int parts,
                                                         std::int64_t gates,
                                                         std::int64_t hidden) const;

private:
  /// Rows [from, from + count) of a tensor without producer.
  struct Rows {
    std::string tensor;
    std::int64_t from = 0;
    std::int64_t count = 0;
  };

  const Node* maker(const std::string& name) const;
  std::optional<Integers> integers(const Node& node, std::size_t input) const;
  /// Operand of an Unsqueeze that adds a leading axis of size 1.
  std::optional<std::string> below_unsqueeze(const std::string& name) const;
  bool add_rows(const std::string& name, int depth, std::vector<Rows>& rows) const;
  bool add_slice(const Node& node, int depth, std::vector<Rows>& rows) const;
  std::optional<GateSource> source(const std::vector<Rows>& rows, std::int64_t first,
                                   std::int64_t gates, std::int64_t hidden) const;

  const Values& values_;
  std::unordered_map<std::string_view, const Node*> makers_;
};

} // namespace monet::onnx_file
