// ONNX file as plain data: the required parts of a ModelProto, checked for form but not for
// meaning. onnx_reader.cpp lists the passes that make a Graph of it.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace monet::onnx_file {

/// Maximum elements of a stored constant; larger ones keep only their shape.
inline constexpr std::int64_t kMaxFoldedElements = 1'000'000;
/// Maximum elements of a computed constant; allows the causal mask of 1024 positions.
inline constexpr std::int64_t kMaxComputedElements = std::int64_t{1} << 21;

struct Dimension {
  std::optional<std::int64_t> size;
  std::string symbol; ///< may be empty even without a size
};

/// Declared type of a graph input, output or intermediate value.
struct Declared {
  std::string name;
  std::optional<ElementType> type;             ///< nullopt: sequence, map, optional or unknown
  std::optional<std::vector<Dimension>> shape; ///< nullopt: unknown rank
};

/// Known properties of a value after its producer was visited.
struct Value {
  ElementType type = ElementType::fp32;
  Integers shape;
  std::optional<ConstantValues> values;
  bool is_constant = false; ///< known at compile time, even if too large to keep the numbers
};

/// A constant vector.
inline Value integer_constant(Integers list) {
  return {ElementType::int64, {static_cast<std::int64_t>(list.size())}, std::move(list), true};
}

struct InnerGraphs;

struct Node {
  std::string name;
  OpType op_type;
  std::string domain;
  std::int64_t opset = 0; ///< version of `domain` that the node uses
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  Attributes attributes;
  std::map<std::string, Value> tensors; ///< tensor-valued attributes
  std::map<std::string, std::string>
      attribute_references;          ///< in a function: attribute -> function parameter
  std::string unsupported_attribute; ///< name of a graph-valued (or other) attribute
  bool has_subgraph = false;
  /// Graphs of If, Loop and Scan; null if a graph is missing or nested too deeply.
  std::shared_ptr<const InnerGraphs> inner;
  std::string documentation;
};

/// Graph within a node. Names refer to the graph's values first, then to those of the enclosing
/// graphs.
struct InnerGraph {
  std::vector<std::string> inputs;
  std::vector<Node> nodes;
  std::vector<std::string> outputs;
  std::map<std::string, Value> initializers;
};

/// Graphs of a control-flow node: the else and then branches of an If, or the body of a Loop or
/// Scan.
struct InnerGraphs {
  std::vector<InnerGraph> graphs;
  /// Captured outer values. They follow the node's regular inputs, so that renaming covers them.
  std::vector<std::string> captured;
  std::size_t own_inputs = 0;
};

struct Function {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<Node> nodes;
};

struct Model {
  std::string origin;
  std::string name;
  std::string producer; ///< "pytorch"
  std::map<std::string, std::int64_t> opsets;
  std::map<std::string, std::string> metadata;
  std::vector<Node> nodes;
  std::vector<Declared> inputs;
  std::vector<Declared> outputs;
  std::unordered_map<std::string, Declared> value_info;
  std::vector<std::string> initializer_order;
  std::unordered_map<std::string, Value> initializers;
  std::map<std::pair<std::string, std::string>, Function> functions; ///< by domain and name
  std::vector<EqualWeights> equal_weights;
  std::unordered_set<std::string> copies; ///< initialisers that are not in their module's order
};

SourceLoc at_node(const Model& model, const Node& node, std::string_view detail = {});
SourceLoc at_tensor(const Model& model, std::string_view name);

/// Corrects repeat_interleave over axes of unknown size, which PyTorch (1.13, for example) writes
/// as a Loop. Each slice of size 1 receives a new axis after it and is repeated along that axis. A
/// Reshape by [0, .., -1, 0, ..] then means the old axes, but ONNX applies it to the new ones; it
/// becomes the intended Squeeze.
void mend_repeat_interleave(InnerGraph& body);
/// Whether PyTorch's exporter computed the value from other initialisers ("onnx::MatMul_12").
bool is_folded_name(std::string_view name);
/// Values by name.
using Values = std::unordered_map<std::string, Value>;

/// Value of input `i`; null if it is omitted or unknown.
inline const Value* input_value(const Node& node, std::size_t i, const Values& values) {
  const auto at = i < node.inputs.size() ? values.find(node.inputs[i]) : values.end();
  return at == values.end() ? nullptr : &at->second;
}

/// Metadata key that lists a file's parameters, one per line; the list overrides all other signs.
inline constexpr std::string_view kParameterList = "monet.parameters";

/// Metadata key and value of files whose external data are omitted on purpose.
inline constexpr std::string_view kWeights = "monet.weights";
inline constexpr std::string_view kStrippedWeights = "stripped";

struct Kinds {
  std::unordered_map<std::string, TensorKind> of; ///< graph inputs and initializers by name
  std::vector<FoundBuffer> buffers;
  std::vector<FoundBuffer> doubtful; ///< parameters that may be buffers
};

/// Rewrites a node of an older or newer opset in the form of opset 17; adds new constants to
/// `values`. Throws InputError at the node if opset 17 has no such form.
void normalise(const Model& model, Node& node, Values& values);

/// A network while it is read.
struct NetworkDraft {
  std::string_view bytes; ///< of the file
  Model model;            ///< after evaluation, its nodes are those that compute at run time
  ProblemList problems;
  std::map<std::string, std::int64_t> dimensions; ///< sizes of named dimensions
  Kinds kinds;
  Values values;
  /// Original constant of copies that are too large to keep their numbers.
  std::unordered_map<std::string, std::string> same_as;
  std::vector<Node> visited; ///< nodes for explanations; includes unrolled ones
  std::map<std::string, std::string> unsupported; ///< reason why outputs are unknown, by node
  Graph graph;

  /// Whether write_onnx wrote the file, whose operators are read unchanged.
  bool is_own() const { return model.metadata.count("monet.tensors") != 0; }
  PassSize size() const;
};

// The passes of the reader, in their order.

/// Reads the bytes. `model.origin` names them in messages.
void parse_model(NetworkDraft& draft);
/// Decides which equal weights are one parameter, by the options or the file. Replaces the second
/// of such a pair by the first or its transpose. Names that PyTorch's exporter merged become
/// separate parameters. Reports patterns of the options that match nothing.
void tie_weights(NetworkDraft& draft, const std::optional<std::vector<std::string>>& ties);
/// Replaces calls of model-local functions by the functions' nodes.
bool inline_functions(NetworkDraft& draft);
/// Makes node names unique.
void name_nodes(NetworkDraft& draft);
/// Checks that every value has one producer, and sorts the nodes topologically, in the file's order
/// where possible.
void sort_nodes(NetworkDraft& draft);
/// Drops nodes that no graph output needs.
void drop_dead_nodes(NetworkDraft& draft);
/// Sets the shape of every graph input from the file and the options; reports every unbound
/// dimension.
void bind_inputs(NetworkDraft& draft, const std::optional<std::int64_t>& batch,
                 const std::map<std::string, std::int64_t>& dimensions);
/// Decides the kind of every graph input and initialiser, by the file's list of parameters, or by
/// its readers, name and numbers. Reports patterns of the options that match nothing.
void decide_kinds(NetworkDraft& draft, const std::vector<std::string>& parameters,
                  const std::vector<std::string>& buffers);
/// Moves the initialisers to the values; their kinds decide which are constants.
void take_initialisers(NetworkDraft& draft, std::int64_t max_elements);
/// Visits the nodes in their order: resolves control flow and sequences, rewrites a node for opset
/// 17, infers its shapes, and folds it if its inputs are constants. The nodes left compute
/// something at run time.
void evaluate_nodes(NetworkDraft& draft, bool recognise, const OutlineExplainer& explain,
                    std::int64_t max_elements);
/// Throws all problems found; the options may explain unsupported operators.
void report_problems(NetworkDraft& draft, const OutlineExplainer& explain);
/// Replaces chains of operators that exporters write for one function (see recognise.hpp). Nodes
/// remain in topological order; values may be added.
bool recognise_chains(NetworkDraft& draft, bool recognise);
/// Makes the graph's tensors and operators.
void assemble(NetworkDraft& draft);
/// Builds the loop nest of every operator. Throws InputError with all that cannot be built.
void build_nests(NetworkDraft& draft);

/// Refuses a value with more elements.
void check_size(const std::string& name, const Value& value, std::int64_t max_elements,
                SourceLoc where);
/// Domain of the operator's rule: MONET's for ONNX operators with more outputs than ONNX allows.
std::string rule_domain(const Node& node);
/// The value itself, or the large constant that it copies.
const std::string& constant_behind(const NetworkDraft& draft, const std::string& name);

/// Calls build_nest() and lists its problems; a problem without location gets that of the operator.
void try_nest(Graph& graph, OpId id, ProblemList& problems);

/// Builds the known part of the graph of a network with unsupported operators. Builds nests as
/// well, to report their problems.
NetworkOutline outline(NetworkDraft& draft);
/// Replacement nodes for a node of an older opset that needs several nodes of opset 17, or for an
/// activation of ONNX Runtime; otherwise empty. Adds new values. With `as_views`, a Gather of one
/// index becomes a slice.
std::vector<Node> expand(const Model& model, const Node& node, Values& values, bool as_views);

/// Refuses attributes of an unexpected kind, and integers too large for axes, window sizes or
/// element types. Attributes are checked as in the file.
void check_attributes(const Model& model, const Node& node);
/// Refuses a node for which libonnx's inference function would misbehave.
void check_node(const Model& model, const Node& node, const Values& values);
/// Infers types and shapes of a node's outputs, in order; nullopt if unknown. Throws InputError if
/// the inputs contradict the operator.
std::vector<std::optional<Value>> infer_outputs(const Model& model, const Node& node,
                                                const Values& values);
/// Whether the size of the output depends on data (NonZero).
bool counts_by_data(const Node& node);
/// Output of NonZero, if its input is a constant or `stated` sets the number of nonzero elements.
std::optional<Value> infer_places(const Model& model, const Node& node, const Values& values,
                                  std::optional<std::int64_t> stated);
/// Whether shapes can be inferred for this operator.
bool can_infer(const Node& node);

/// Computes a node with constant inputs, or one that reads only shapes. `outputs` must have their
/// shapes. Returns false if the operator cannot be folded.
bool fold_constant(const Node& node, const Values& values, std::vector<Value>& outputs);

Attributes without(const Attributes& attributes, std::initializer_list<std::string_view> dropped);
/// Sets input `index` to a constant vector.
void set_integers(Node& node, std::size_t index, std::string_view name, Integers list,
                  Values& values);

/// Throws InputError if the node has attributes, or values of them, that its opset lacks.
void check_opset(const Model& model, const Node& node);
/// Rewrites a node of opset 18 or later. Throws InputError if opset 17 has no such form.
void from_newer(const Model& model, Node& node, Values& values);
/// Makes the axes of a reduction known, for any opset; only ReduceSum keeps them as an input. A
/// reduction over no axes becomes an Identity. Throws InputError if the axes depend on data.
void settle_axes(const Model& model, Node& node, Values& values);

// Classification of floating initialisers as buffers: kept, but never trained. ONNX does not
// specify it.

/// Use of a value: input `input` of a node.
struct Use {
  const Node* node = nullptr;
  std::size_t input = 0;
};

/// Sign that an initialiser is a buffer.
struct BufferSign {
  /// Strength of the sign. Strong ones rarely occur in parameters. A weak one may be an initial
  /// parameter; it is overruled by a certain parameter later in the module (kinds.cpp).
  enum class Strength { none, weak, strong, certain };

  std::string why; ///< "its name"
  Strength strength = Strength::none;
  bool may_begin = false; ///< layers' weights may be initialised so
};

/// Whether a value has two distinct numbers, one of them zero; nullopt if its numbers are unknown.
std::optional<bool> has_two_numbers(const Value& value);

/// Sign of a name ("inv_freq", "causal_mask"). Names also used for parameters ("mask") count if
/// there are two numbers, or if the numbers are unknown.
BufferSign buffer_by_name(std::string_view name, std::optional<bool> has_two_numbers);

/// Sign of numbers that training never yields: infinities, triangles of ones, sines, sequences,
/// fixed filters and similar. `uses` are all readers of the value.
BufferSign buffer_by_numbers(const Value& value, const std::vector<Use>& uses);

/// Whether the name contains a word for statistics or constants ("feature_mean").
bool is_suspect_name(std::string_view name);

/// Whether PyTorch's modules use such a name for parameters ("conv1.weight").
bool is_layer_name(std::string_view name);

/// Initialiser whose kind is being decided.
struct KindCandidate {
  std::string name;
  std::int64_t elements = 0;
  TensorKind kind = TensorKind::parameter;
  BufferSign sign; ///< may contradict the kind
  bool is_floating = false;
  bool is_layer = false;   ///< weight of a product, by reader or name
  bool is_settled = false; ///< the user declares it a parameter
  bool has_place = true;   ///< its position in the module is known
};

/// Decides where the buffers of each module begin, in the file's order, so that the fewest signs
/// are wrong; sets the kinds accordingly. PyTorch writes a module's parameters before its buffers.
void apply_module_order(std::vector<KindCandidate>& candidates);

/// Whether an exporter or optimiser generated the name ("/attn/Constant_output_0", "onnx::Div_37",
/// "const_fold_opt__12"). A scalar with such a name is a constant.
bool is_constant_name(std::string_view name);

/// Whether a scalar is named after its number ("half"), or is a small number named epsilon.
bool is_named_number(std::string_view name, double value);

} // namespace monet::onnx_file
