// read_onnx(): converts an ONNX file to a Graph. ONNX's own types are used only inside the .cpp.
// Example:
//   Graph read_resnet18(std::int64_t batch) {
//     OnnxReadOptions options;
//     options.batch = batch;
//     return read_onnx("data/workload/resnet18.onnx", options);
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/base/stage.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// An operator that the reader does not support.
struct UnsupportedOperator {
  OpId op;
  std::string what; ///< message: "operator NonZero of domain 'ai.onnx' is not supported"
};

/// Structure of a network that cannot be read. It allows messages about all operators at once,
/// although shapes after the first unsupported one are unknown. Tensors and operators are as in the
/// file. Operators have no loop nests.
struct NetworkOutline {
  Graph graph;
  /// Per tensor: whether shape and type are known. If not, the shape is empty and the type is
  /// guessed from the usual output of such an operator.
  std::vector<bool> known;
  std::vector<UnsupportedOperator> unsupported;
};

/// Function that words the problems of a network with unsupported operators.
using OutlineExplainer = std::function<std::vector<InputProblem>(const NetworkOutline&)>;

/// Options of read_onnx().
struct OnnxReadOptions {
  /// Size of the first axis of every graph input whose first axis is symbolic; required for such
  /// networks.
  std::optional<std::int64_t> batch;
  /// Sizes of other symbolic dimensions by name ("sequence").
  std::map<std::string, std::int64_t> dimensions;
  /// Patterns of floating-point initialisers that are parameters, whatever they look like.
  std::vector<std::string> parameters;
  /// Patterns of floating-point initialisers that are buffers, whatever they look like.
  std::vector<std::string> buffers;
  /// Patterns of initialisers that are one parameter with the initialiser that has the same numbers
  /// or transposed numbers. nullopt: those that PyTorch's exporter wrote twice.
  std::optional<std::vector<std::string>> ties;
  /// Maximum number of elements of a tensor; larger ones are rejected (a hostile file must not
  /// cause overflow).
  std::int64_t max_elements = std::int64_t{1} << 42;
  /// The reader otherwise reports unsupported operators one by one. A later stage thus adds the
  /// network's other problems (explain_operators()).
  OutlineExplainer explain;
  /// Whether to replace chains that exporters write for one function by one operator, if their
  /// intermediate results have no other readers. Functions are GELU, SiLU, hard swish, Mish, and
  /// layer, RMS and group normalisation.
  bool recognise = true;
};

/// Reads a network: infers shapes, folds constant chains (Shape, Gather, Slice, Concat, ...), sorts
/// nodes topologically and builds the loop nest of every operator. Weights' data are not needed,
/// and external files are never opened. Operators are converted to opset 17, whatever the file's
/// opset.
///
/// Floating-point initialisers become parameters, except:
/// - settings of operators (bounds of Clip, scales of Resize or of quantisation);
/// - scalars that an exporter made of constants, recognised by their names;
/// - buffers (Graph::buffers; Graph::doubtful for uncertain ones).
///
/// If the file's metadata "monet.parameters" (names, one per line) exists, initialisers outside
/// that list are buffers. Otherwise buffers are recognised by name, by numbers (masks, tables of
/// sines, sequences, fixed filters), or by position in their module. Initialisers in
/// OnnxReadOptions::ties, or that an exporter wrote twice, are one parameter
/// (Graph::equal_weights). 8-bit integers in weight positions are also parameters. Inputs 3 and 4
/// of BatchNormalization become buffers, and its outputs 1 and 2 their aliases.
///
/// Published MONET training graphs have a graph output called "<weight>_optimizer_end". In these,
/// floating-point graph inputs after the first are parameters or, by name, optimiser states.
///
/// Throws one InputError with all unsupported operators, unknown shapes and unbound dimensions,
/// each with its node. `observe` is called after each pass.
Graph read_onnx(const std::string& path, const OnnxReadOptions& options = {},
                const PassObserver& observe = {});
/// Reads a network from the bytes of an ONNX file; see read_onnx(). `origin` names them in
/// messages.
Graph read_onnx_bytes(std::string_view bytes, const std::string& origin,
                      const OnnxReadOptions& options = {}, const PassObserver& observe = {});

/// Function that returns whether the numbers of a tensor with this name are needed.
using NeedsNumbers = std::function<bool(const std::string&)>;

/// Reads the numbers of initialisers by name, from the file or its external data; for execution,
/// not for modelling. It reads the initialisers for which `needs` returns true, or all if it is
/// empty.
///
/// Strings are omitted. Initialisers without numbers are omitted with a warning if the file's
/// metadata "monet.weights" is "stripped", or if they have no location. Throws InputError for other
/// external data that are missing, contradict the shape, are not a regular file, or are outside the
/// file's folder (also through a symbolic link).
std::map<std::string, ConstantValues> read_onnx_weights(const std::string& path,
                                                        const NeedsNumbers& needs = {});
/// Reads the numbers of initialisers from the bytes of an ONNX file; see read_onnx_weights().
/// External data are in the folder of `origin`.
std::map<std::string, ConstantValues> read_onnx_weights_bytes(std::string_view bytes,
                                                              const std::string& origin,
                                                              const NeedsNumbers& needs = {});

} // namespace monet
