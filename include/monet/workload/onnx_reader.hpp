// ONNX file -> Graph. ONNX's own types stay inside the .cpp.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace monet {

struct UnsupportedOperator {
  OpId op;
  std::string what; ///< for people: "operator NonZero of domain 'ai.onnx' is not supported"
};

/// The structure of a network that cannot be read: what there is to say about all of its operators
/// at once, although the shapes behind the first unsupported one are unknown. Tensors and operators
/// as in the file. Operators have no loop nests.
struct NetworkOutline {
  Graph graph;
  std::vector<bool> known; ///< by tensor: shape and type are known; else the shape is empty and the
                           ///< type a guess by what usually comes out of such an operator
  std::vector<UnsupportedOperator> unsupported;
};

struct OnnxReadOptions {
  /// Bound to the first axis of every graph input whose first axis is symbolic; required for such
  /// networks.
  std::optional<std::int64_t> batch;
  /// Values of other symbolic dimensions by name ("sequence").
  std::map<std::string, std::int64_t> dimensions;
  /// Patterns of floating initialisers that are parameters, and such that are buffers, whatever
  /// they look like.
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
  /// Patterns of initialisers that are one parameter with the initialiser whose numbers, or
  /// transposed numbers, they have. None: those that PyTorch's exporter wrote twice.
  std::optional<std::vector<std::string>> ties;
  /// A tensor larger than this is refused (a hostile file must not make us overflow).
  std::int64_t max_elements = std::int64_t{1} << 42;
  /// Words the problems of a network with unsupported operators, which the reader otherwise reports
  /// one by one: a later stage knows what else is wrong with such a network (explain_operators()).
  std::function<std::vector<InputProblem>(const NetworkOutline&)> explain;
  /// Chains that exporters write for one function (GELU, SiLU, hard swish, Mish, layer, RMS and
  /// group normalisation) become one operator, where nothing else reads what they make on the way.
  bool recognise = true;
};

/// Reads, infers shapes, folds constant chains (Shape, Gather, Slice, Concat, ...), orders nodes
/// topologically and gives every operator its loop nest. Weights' data are not needed and external
/// files are never opened. Floating initialisers become parameters, except operators' settings
/// (bounds of Clip, scales of Resize or of quantisation), scalars that an exporter made of
/// constants (told by their names), and buffers: those that the file's metadata "monet.parameters"
/// (names, one a line) leaves out, or without such a list what its name, its numbers (masks, tables
/// of sines, sequences, fixed filters), or its place in its module tells (Graph::buffers, and
/// Graph::doubtful for parameters that are only likely to be some). Initialisers that
/// OnnxReadOptions::ties names, or that an exporter wrote twice, are one parameter
/// (Graph::equal_weights). 8-bit integers in weight positions are parameters too. Inputs 3 and 4 of
/// BatchNormalization become buffers, its outputs 1 and 2 alias them. In published MONET training
/// graphs (some graph output is called "<weight>_optimizer_end") floating graph inputs after the
/// first are parameters or, by name, optimiser states. Operators take the form of opset 17,
/// whatever the file's opset. Throws one InputError listing all unsupported operators, unknown
/// shapes and unbound dimensions, each with its node.
Graph read_onnx(const std::string& path, const OnnxReadOptions& options = {});
/// The same from bytes; `origin` names them in messages.
Graph read_onnx_bytes(std::string_view bytes, const std::string& origin,
                      const OnnxReadOptions& options = {});

/// Whether a tensor of this name takes numbers of the file.
using NeedsNumbers = std::function<bool(const std::string&)>;

/// For executing, not for modelling: numbers by name of the initialisers that need them (all
/// without `needs`), from the file or from its external data. Strings are left out, and
/// initialisers without numbers in a file whose metadata "monet.weights" is "stripped", or without
/// a place for them, which is a warning. Throws InputError for other external data that are
/// missing, that contradict the shape, are no regular file or lie outside the file's folder, be it
/// by a symbolic link.
std::map<std::string, ConstantValues> read_onnx_weights(const std::string& path,
                                                        const NeedsNumbers& needs = {});
/// The same from bytes; external data lie beside `origin`.
std::map<std::string, ConstantValues> read_onnx_weights_bytes(std::string_view bytes,
                                                              const std::string& origin,
                                                              const NeedsNumbers& needs = {});

} // namespace monet
