// recognise_training_step(): reads training steps that other tools differentiated. It finds the
// roles of operators, and replaces convolution gradients that consist of several operators by
// single operators.
// Example:
//   Graph read_step(const Graph& file, std::vector<std::string>& deviations) {
//     ForeignReport report;
//     Graph step = recognise_training_step(file, report);
//     for (const RecognisedGradient& gradient : report.recognised)
//       if (!gradient.deviation.empty())
//         deviations.push_back(gradient.node + ": " + gradient.deviation);
//     return step;
//   }
#pragma once

#include "monet/workload/graph.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// A recognised gradient of a convolution.
struct RecognisedGradient {
  std::string node; ///< operator that represents it, the last of those it replaces
  GradientOf of = GradientOf::none;
  int replaced = 1; ///< number of operators in the file that it replaces
  /// Difference between the file's arithmetic and the gradient; empty if they are proven equal.
  std::string deviation;
};

/// An operator that resembles a part of a convolution's gradient but is modelled as it is.
struct KeptOperator {
  std::string node;
  std::string why;
};

/// Report of recognise_training_step().
struct ForeignReport {
  bool is_training_step = false; ///< false: the graph is returned unchanged
  std::vector<RecognisedGradient> recognised;
  std::vector<KeptOperator> kept;
};

/// Recognises a training step in a graph. A step that this library wrote has its phases in the file
/// and is returned unchanged. Any other step is recognised by its updated weights
/// ("<weight>_optimizer_end" for a parameter with that name) or by com.microsoft gradients of a
/// loss. Operators get their phases, and products of the backward phase the gradient that they
/// compute. Updated weights become aliases of the weights. In addition:
/// - ConvTranspose of dY by the weight of a forward convolution with the same geometry becomes
///   ConvGradInput.
/// - MatMul of dY with a patch matrix, which Gathers collect from the padded input, becomes
///   ConvGradWeight if it is summed over the batch. The index tables and the order of the patch
///   prove this.
///
/// Some graphs, such as those published with MONET, have tables with correct rows that repeat one
/// window, or other orders. Such a chain is a gradient if there is a forward convolution with that
/// input, geometry and weight shape; the deviation is reported.
Graph recognise_training_step(const Graph& graph, ForeignReport& report);

/// Returns a network in the form to model, after recognise_training_step(). Throws InputError with
/// the hint if it is a training step and `differentiate` is set.
Graph recognise(Graph network, bool differentiate, ForeignReport& report,
                std::string_view hint = "leave the training options out");

} // namespace monet
