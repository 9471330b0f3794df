// Writes a graph anew from runs of its operators, some of which run several times.
#pragma once

#include "training_graph/build/rebuild.hpp"

#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace monet {

/// Maps operators and tensors of a graph with folded views to those of the graph with views.
class Unfolded {
public:
  /// Keeps references to the graphs.
  Unfolded(const Graph& graph, const Graph& folded);

  struct Run {
    OpId op;            ///< that became this one; of a view with several results, all copies' one
    bool again = false; ///< a copy that folding has run once more
  };
  Run operator[](OpId folded) const;
  TensorId operator[](TensorId folded) const;

private:
  std::optional<OpId> named(const Operator& op) const;

  const Graph& folded_;
  std::map<std::string_view, OpId> ops_;
  std::map<std::string_view, TensorId> tensors_;
};

class RunSequence {
public:
  /// `as_read`: the same graph with folded views. Its operators determine the views that they read
  /// as they are (because those are copies there) and the views that they look through. If null,
  /// they look through all.
  explicit RunSequence(const Graph& graph, const Graph* as_read = nullptr);

  /// Appends a run. The first one is the operator itself; its tensors keep their ids.
  void run(OpId id);
  /// Appends a copy of the current version of `tensor`, made by the operator `op_type` of ai.monet.
  /// The copy's name is the name of `tensor` with the suffix.
  TensorId copy(TensorId tensor, OpType op_type, std::string_view suffix, Phase phase);
  /// Makes later readers of `tensor` read `instead`.
  void read_instead(TensorId tensor, TensorId instead) { current_[tensor.index()] = instead; }
  bool has_run(OpId id) const { return made_.first_copy(id).has_value(); }
  Graph release() { return made_.release(); }

private:
  void name_folded(const Graph& as_read);
  bool reads_as_is(OpId reader, TensorId tensor) const;
  TensorId version(TensorId tensor, OpId reader);
  void run_again(Operator op, OpId id);
  void run_view_again(OpId id, TensorId source);
  void write_copies(Operator& op, std::vector<std::pair<TensorId, TensorId>>& written);
  void note_written(OpId id, const std::vector<std::pair<TensorId, TensorId>>& written);
  static void leave_out_running_statistics(Operator& op);

  const Graph& graph_;
  GraphRewriter made_;
  std::vector<TensorId> current_;                 ///< per tensor: what its last run wrote
  std::vector<std::optional<TensorId>> viewed_;   ///< per view: the version that it is a view of
  std::vector<std::vector<TensorId>> read_as_is_; ///< per operator, sorted; see the constructor
};

} // namespace monet
