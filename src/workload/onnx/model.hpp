// An ONNX file as plain data: what the reader needs of a ModelProto, checked for form but not for
// meaning. Reading goes parse_model -> inline_functions -> order_nodes -> infer_model -> Graph
// (onnx_reader.cpp).
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

/// Constants with more elements keep their shape only.
inline constexpr std::int64_t kMaxFoldedElements = 1'000'000;
/// The same for what is computed from constants: the causal mask of 1024 positions is known.
inline constexpr std::int64_t kMaxComputedElements = std::int64_t{1} << 21;

struct Dimension {
  std::optional<std::int64_t> size;
  std::string symbol; ///< may be empty although there is no size
};

/// Declared type of a graph input, output or intermediate value.
struct Declared {
  std::string name;
  std::optional<ElementType> type;             ///< none: a sequence, map, optional or unknown type
  std::optional<std::vector<Dimension>> shape; ///< none: of unknown rank
};

/// What is known of a value once its producer was visited.
struct Value {
  ElementType type = ElementType::fp32;
  Integers shape;
  std::optional<ConstantValues> values;
  bool is_constant = false; ///< known at compile time, though perhaps too large to keep the numbers
};

/// A constant vector.
inline Value integer_constant(Integers list) {
  return {ElementType::int64, {static_cast<std::int64_t>(list.size())}, std::move(list), true};
}

struct InnerGraphs;

struct Node {
  std::string name;
  std::string op_type;
  std::string domain;
  std::int64_t opset = 0; ///< version of `domain` that the node is written in
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  Attributes attributes;
  std::map<std::string, Value> tensors; ///< tensor-valued attributes
  std::map<std::string, std::string>
      attribute_references;          ///< in a function: attribute -> its parameter
  std::string unsupported_attribute; ///< name of a graph-valued (or other) attribute
  bool has_subgraph = false;
  /// Of If, Loop and Scan; null where a graph is missing or they are nested too deeply.
  std::shared_ptr<const InnerGraphs> inner;
  std::string documentation;
};

/// A graph within a node. Names mean what they mean at that place of the file: the graph's own
/// values first, then those of the graphs around it.
struct InnerGraph {
  std::vector<std::string> inputs;
  std::vector<Node> nodes;
  std::vector<std::string> outputs;
  std::map<std::string, Value> initializers;
};

/// Of an If what runs when its condition does not hold, then what runs when it does; of a Loop or
/// Scan the body.
struct InnerGraphs {
  std::vector<InnerGraph> graphs;
  /// What they take from outside. The node has these values as inputs after its own, where they are
  /// renamed with all others.
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

/// PyTorch (1.13, say) writes repeat_interleave over axes whose sizes are not fixed as a Loop:
/// every slice of one element gets a new axis after its own, is repeated along that, and is
/// reshaped by [0, .., -1, 0, ..] to the axes from before, which ONNX reads as others. It becomes
/// the Squeeze that is meant.
void mend_repeat_interleave(InnerGraph& body);
Model parse_model(std::string_view bytes, const std::string& origin);
/// "onnx::MatMul_12": PyTorch's exporter computed it from other initialisers.
bool is_folded_name(std::string_view name);
/// Gives parameters of their own to the names under which PyTorch's exporter wrote equal ones once.
/// Decides which of the model's equal weights are one parameter, by the options or the file, and
/// replaces the second of such a pair by the first, or by a transposition of it. A pattern of the
/// options that matches nothing is a problem.
void tie_weights(Model& model, const OnnxReadOptions& options, ProblemList& problems);
/// Replaces nodes that call model-local functions by the functions' nodes.
void inline_functions(Model& model);
/// Gives every node a unique name, checks that every value has one producer, sorts the nodes
/// topologically (keeping the file's order where it can) and drops nodes that no graph output
/// needs.
void order_nodes(Model& model);

/// All values by name.
using Values = std::unordered_map<std::string, Value>;

/// What is known of input `i`; null where it is left out or nothing is known.
inline const Value* input_value(const Node& node, std::size_t i, const Values& values) {
  const auto at = i < node.inputs.size() ? values.find(node.inputs[i]) : values.end();
  return at == values.end() ? nullptr : &at->second;
}

/// Gives every graph input its shape, by the file and the options. Every unbound dimension becomes
/// a problem. Returns the sizes of named dimensions.
std::map<std::string, std::int64_t> bind_inputs(const Model& model, const OnnxReadOptions& options,
                                                Values& values, ProblemList& problems);
/// Names of a file's parameters, one a line, in its metadata: who writes this is believed.
inline constexpr std::string_view kParameterList = "monet.parameters";

/// Metadata of files whose external data are left out on purpose.
inline constexpr std::string_view kWeights = "monet.weights";
inline constexpr std::string_view kStrippedWeights = "stripped";

struct Kinds {
  std::unordered_map<std::string, TensorKind> of; ///< graph inputs and initializers by name
  std::vector<FoundBuffer> buffers;
  std::vector<FoundBuffer> doubtful; ///< parameters that may be buffers
};
/// Kind of every graph input and initializer by name, decided by the file's list of parameters, or
/// by where the values are read and what they are (buffers.hpp). A pattern of the options that
/// matches nothing is a problem.
Kinds decide_kinds(const Model& model, const OnnxReadOptions& options, ProblemList& problems);

/// Rewrites a node of an older (or newer) opset in the form of opset 17; values made on the way are
/// added. Throws InputError located at the node when opset 17 has no such form.
void normalise(const Model& model, Node& node, Values& values);

/// What the pass over the nodes found out.
struct Inferred {
  Values values;
  std::vector<Node> kept; ///< nodes that compute something at run time
  Kinds kinds;
  /// Copies of constants too large to keep their numbers -> what they are copies of.
  std::unordered_map<std::string, std::string> same_as;
  std::map<std::string, std::string> unsupported; ///< node -> why nothing is known of its outputs
};

/// ONNX operators that we give more outputs than ONNX allows are written in our domain.
std::string rule_domain(const Node& node);
/// The value itself, or the large constant that it is a copy of.
const std::string& constant_behind(const Inferred& inferred, const std::string& name);

/// build_nest() with its problems listed, each at the operator if nowhere else.
void try_nest(Graph& graph, OpId id, ProblemList& problems);

/// The graph of a network of which everything is known. InputError when a nest cannot be built.
Graph assemble(const Model& model, const Inferred& inferred);
/// The graph of a network with unsupported operators, as far as it goes. Nests are tried, to report
/// what is wrong with them as well.
NetworkOutline outline(const Model& model, const Inferred& inferred, ProblemList& problems);
/// The nodes that stand for one of an older opset which no single node of opset 17 can express, or
/// for one of ONNX Runtime's activations; empty for all others. Values made on the way are added.
/// `as_views`: a Gather of one index becomes a slice.
std::vector<Node> expand(const Model& model, const Node& node, Values& values, bool as_views);

/// Replaces chains of operators that exporters write for one function by that function (see
/// recognise.hpp). `nodes` are in topological order and stay so; values may be added.
void recognise(const Model& model, std::vector<Node>& nodes, Values& values);

/// Refuses attributes of another kind than every operator that has them expects, and integers that
/// are too large to be axes, sizes of windows or element types. Attributes as the file has them.
void check_attributes(const Model& model, const Node& node);
/// Refuses a node that libonnx's inference function of it would do harm with.
void check_node(const Model& model, const Node& node, const Values& values);
/// Types and shapes of a node's outputs, in order; nullopt where they cannot be known.
/// Throws InputError when the inputs contradict the operator.
std::vector<std::optional<Value>> infer_outputs(const Model& model, const Node& node,
                                                const Values& values);
/// NonZero: how many places it finds depends on data.
bool counts_by_data(const Node& node);
/// Its result where the places can be counted in a constant, or `stated` says how many there are.
std::optional<Value> infer_places(const Model& model, const Node& node, const Values& values,
                                  std::optional<std::int64_t> stated);
/// True when shapes can be inferred for operators of this kind.
bool can_infer(const Node& node);

/// Computes a node whose inputs are constants (or which only asks for shapes). `outputs` have their
/// shapes already. Returns false when the operator is not one that is folded here.
bool fold_constant(const Node& node, const Values& values, std::vector<Value>& outputs);

Attributes without(const Attributes& attributes, std::initializer_list<std::string_view> dropped);
/// Makes a constant vector input `index`.
void set_integers(Node& node, std::size_t index, std::string_view name, Integers list,
                  Values& values);

/// InputError where the node has attributes, or words for them, that its opset has not.
void check_opset(const Model& model, const Node& node);
/// A node of opset 18 or later. InputError where opset 17 has no such form.
void from_newer(const Model& model, Node& node, Values& values);
/// Axes of a reduction, of any opset, are known; those of all but ReduceSum are an attribute. One
/// over no axes becomes what it computes then. InputError where they depend on data.
void settle_axes(const Model& model, Node& node, Values& values);

// Which floating initialisers are buffers, that is: kept, but never trained. ONNX does not say.

/// A use of a value: input `input` of a node.
struct Use {
  const Node* node = nullptr;
  std::size_t input = 0;
};

/// What makes an initialiser look like a buffer.
struct BufferSign {
  /// A strong sign is rarely found in a parameter. A weak one may be how a parameter begins: it
  /// yields to what surely is a parameter behind it in its module (kinds.cpp).
  enum class Strength { none, weak, strong, certain };

  std::string why; ///< "its name"
  Strength strength = Strength::none;
  bool may_begin = false; ///< weights of layers are set so, to be trained on
};

/// Whether a value has two numbers of which one is zero; none: its numbers are not known.
std::optional<bool> has_two_numbers(const Value& value);

/// The sign of a name ("inv_freq", "causal_mask"). Names that parameters often have as well
/// ("mask") count where there are two numbers, or they are not known.
BufferSign buffer_by_name(std::string_view name, std::optional<bool> has_two_numbers);

/// The sign of numbers: infinities, triangles of ones, sines, sequences, fixed filters and so on,
/// which no training leaves behind. `uses`: everything that reads it.
BufferSign buffer_by_numbers(const Value& value, const std::vector<Use>& uses);

/// The name has a word of statistics or fixed numbers ("feature_mean").
bool is_suspect_name(std::string_view name);

/// "conv1.weight": what the modules of PyTorch call their parameters.
bool is_layer_name(std::string_view name);

/// An initialiser whose kind is being decided.
struct KindCandidate {
  std::string name;
  std::int64_t elements = 0;
  TensorKind kind = TensorKind::parameter;
  BufferSign sign; ///< may speak against the kind
  bool is_floating = false;
  bool is_layer = false;   ///< the weight of a product, by its reader or its name
  bool is_settled = false; ///< the user says that it is a parameter
  bool has_place = true;   ///< among its module's initialisers
};

/// PyTorch writes the parameters of each module, then its buffers: decides where the latter begin
/// so that as few signs as possible are wrong, and the kinds of all candidates with it. In the
/// file's order.
void apply_module_order(std::vector<KindCandidate>& candidates);

/// A name that an exporter or optimiser gave ("/attn/Constant_output_0", "onnx::Div_37",
/// "const_fold_opt__12"), not a module: a scalar of that name is a constant.
bool is_constant_name(std::string_view name);

/// A scalar that is called after its number ("half"), or a small one called epsilon.
bool is_named_number(std::string_view name, double value);

} // namespace monet::onnx_file
