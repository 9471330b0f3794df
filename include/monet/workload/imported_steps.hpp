// Training steps that other tools differentiated: which operator is what, and gradients of
// convolutions that are spelled out in other operators put back into one.
#pragma once

#include "monet/workload/graph.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// A convolution's gradient that was found.
struct RecognisedGradient {
  std::string node; ///< the operator that stands for it now; the last of those it replaces
  GradientOf of = GradientOf::none;
  int replaced = 1; ///< operators of the file that it stands for
  /// How the file's own arithmetic differs from the gradient; empty = proven equal to it.
  std::string deviation;
};

/// An operator that looks like part of a convolution's gradient, but is costed as it stands.
struct KeptOperator {
  std::string node;
  std::string why;
};

struct ForeignReport {
  bool is_training_step = false; ///< false: the graph was returned as it is
  std::vector<RecognisedGradient> recognised;
  std::vector<KeptOperator> kept;
};

/// A step that this library wrote has its phases in the file, and stays as it is. Any other is
/// known by its updated weights ("<weight>_optimizer_end" beside a parameter of that name) or by
/// com.microsoft gradients of a loss. Its operators get their phase, products of the backward phase
/// what they are the gradient of, updated weights become aliases of the weights, and
///   - ConvTranspose of dY by the weight of a forward convolution, of the same geometry, becomes
///     ConvGradInput;
///   - MatMul of dY with a patch matrix that Gathers collect from the padded input, summed over the
///     batch, becomes ConvGradWeight. The index tables and the order of the patch prove it. Tables
///     of the right rows that name one window again and again, and other orders, as in the graphs
///     published with MONET, cannot be meant; such a chain is the gradient if a forward
///     convolution of that input, geometry and weight shape exists, and its deviation is reported.
Graph recognise_training_step(const Graph& graph, ForeignReport& report);

/// A network as it is modelled: recognise_training_step(). InputError with the hint when it is such
/// a step and `differentiate` is set.
Graph recognise(Graph network, bool differentiate, ForeignReport& report,
                std::string_view hint = "leave the training options out");

} // namespace monet
