// Reads an ONNX file into a Graph by a list of passes, which are declared in onnx/model.hpp.
#include "monet/workload/onnx_reader.hpp"

#include "base/shared/passes.hpp"
#include "workload/onnx/model.hpp"

#include "monet/base/files.hpp"

namespace monet {

namespace {

using namespace onnx_file;
using O = OnnxReadOptions;

constexpr Pass<NetworkDraft, OnnxReadOptions> kPasses[]{
    {"parse the file", "bytes", "model", over<parse_model>},
    {"tie equal weights", "model", "model", over<tie_weights, &O::ties>},
    {"inline functions", "model", "model", over<inline_functions>},
    {"name nodes", "model", "model", over<name_nodes>},
    {"sort nodes", "model", "model", over<sort_nodes>},
    {"drop dead nodes", "model", "model", over<drop_dead_nodes>},
    {"bind inputs", "model", "dimensions, values", over<bind_inputs, &O::batch, &O::dimensions>},
    {"decide kinds", "model", "kinds", over<decide_kinds, &O::parameters, &O::buffers>},
    {"take initialisers", "model, kinds", "values", over<take_initialisers, &O::max_elements>},
    {"evaluate nodes", "model, dimensions, values", "model, values, unsupported operators",
     over<evaluate_nodes, &O::recognise, &O::explain, &O::max_elements>},
    {"report problems", "model, kinds, values, unsupported operators", "model",
     over<report_problems, &O::explain>},
    {"recognise chains", "model, values", "model, values", over<recognise_chains, &O::recognise>},
    {"drop nodes of shapes", "model", "model", over<drop_dead_nodes>},
    {"assemble the graph", "model, kinds, values", "graph", over<assemble>},
    {"build loop nests", "graph", "graph", over<build_nests>},
};

} // namespace

PassSize NetworkDraft::size() const {
  if (!graph.tensors().empty())
    return {graph.operators().size(), graph.tensors().size()};
  return {model.nodes.size(), values.empty() ? model.initializers.size() : values.size()};
}

Graph read_onnx_bytes(std::string_view bytes, const std::string& origin,
                      const OnnxReadOptions& options, const PassObserver& observe) {
  NetworkDraft draft;
  draft.bytes = bytes;
  draft.model.origin = origin;
  run_passes<NetworkDraft, OnnxReadOptions>(kPasses, draft, options, observe);
  return std::move(draft.graph);
}

Graph read_onnx(const std::string& path, const OnnxReadOptions& options,
                const PassObserver& observe) {
  return read_onnx_bytes(read_file(path), path, options, observe);
}

} // namespace monet
