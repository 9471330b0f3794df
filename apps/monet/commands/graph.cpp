// monet graph: builds the training graph of a network, prints its statistics, and exports it as
// ONNX or SVG. Calls the training-graph stage.
#include "base/shared/text.hpp"
#include "commands/commands.hpp"
#include "commands/execute.hpp"
#include "options/network_options.hpp"
#include "options/unused_options.hpp"
#include "pipeline.hpp"
#include "report/shared/operator_table.hpp"
#include "report/shared/optimise_result.hpp"
#include "report/shared/text.hpp"
#include "training_graph/shared/operand_roles.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/files.hpp"
#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/imported_steps.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <map>
#include <memory>

namespace monet::cli {

namespace {

constexpr std::int64_t kAddressGranule = 64; // alignment of addresses in bytes

struct GraphArguments {
  std::string network;
  std::string training;
  bool inference = false;
  bool operators = false;
  NetworkArguments options;
  ExecuteArguments execute;
  std::string output;
  std::string picture;
  bool in_place = false;
  std::string json;
};

std::string phase_of(const Operator& op) {
  return std::string(monet::name_of(op.phase));
}

Json operators_json(const Graph& graph) {
  std::map<std::pair<Phase, std::string>, std::int64_t> counts;
  for (const Operator& op : graph.operators())
    ++counts[{op.phase, op.op_type.str()}];
  Json json = Json::object();
  for (const auto& [key, count] : counts) {
    json[std::string(monet::name_of(key.first))][valid_utf8(key.second)] = count;
  }
  return json;
}

Json owners_json(const LiveBytes& bytes, std::size_t owners) {
  Json json = Json::object();
  for (std::size_t i = 0; i < owners; ++i)
    json[std::string(monet::name_of(static_cast<MemoryOwner>(i))) + "_bytes"] = bytes[i];
  return json;
}

/// Bytes of all tensors by owner; each storage is counted once.
Json tensor_bytes_json(const TrainingGraph& folded) {
  LiveBytes bytes{};
  const std::vector<Tensor>& tensors = folded.graph.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    const bool used = tensor.producer || !tensor.consumers.empty();
    if (used && !tensor.alias_of) {
      bytes[static_cast<std::size_t>(folded.owner.at(i))] += bytes_of(size_of(tensor));
    }
  }
  return owners_json(bytes, reported_owners(folded));
}

Json stored_json(const TrainingGraph& folded) {
  Json stored = Json::array();
  for (const TensorId id : folded.stored_activations) {
    const Tensor& tensor = folded.graph.tensor(id);
    const std::int64_t bytes = bytes_of(size_of(tensor));
    stored.push_back({{"name", valid_utf8(tensor.name)}, {"bytes", bytes}});
  }
  return stored;
}

/// Live memory if the operators run in order, and addresses of all tensors that are not permanent.
Json graph_memory_json(const TrainingGraph& folded, bool reuse_operands) {
  const Liveness liveness = find_liveness(folded, {reuse_operands});
  AllocationOptions effort;
  effort.max_work = 50'000'000;
  const AddressPlan plan = plan_addresses(liveness, kAddressGranule, effort);
  const std::size_t owners = reported_owners(folded);
  Json operators = Json::array();
  for (std::size_t i = 0; i < liveness.live.size(); ++i) {
    operators.push_back({{"name", valid_utf8(folded.graph.op(OpId(i)).name)},
                         {"live", owners_json(liveness.live[i], owners)}});
  }
  Json json = {{"peak_bytes", 0}, {"peak_operator", ""}, {"peak", owners_json({}, owners)}};
  if (!liveness.live.empty()) {
    const LiveBytes& peak = liveness.live[liveness.peak];
    json = {{"peak_bytes", total(peak)},
            {"peak_operator", valid_utf8(folded.graph.op(OpId(liveness.peak)).name)},
            {"peak", owners_json(peak, owners)}};
  }
  json["arena_bytes"] = plan.arena_bytes;
  json["arena_bound_bytes"] = plan.bound_bytes;
  json["arena_proven"] = plan.proven;
  json["arena_granule_bytes"] = kAddressGranule;
  json["operators"] = std::move(operators);
  return json;
}

/// Operands of products by role, with every copy needed for blocks along other axes.
Json roles_json(const TrainingGraph& folded, bool reuse_operands) {
  const auto roles = operand_roles(folded, find_liveness(folded, {reuse_operands}));
  Json json = {{"footprint_bits", footprint(roles).value}};
  for (std::size_t r = 0; r < roles.size(); ++r) {
    const RoleOperands& role = roles[r];
    Json tensors = Json::array();
    for (const ProductOperand& operand : role.operands) {
      Json types = Json::array();
      for (const TensorId form : operand.forms)
        types.push_back(monet::name_of(folded.graph.tensor(form).type));
      const Tensor& source = folded.graph.tensor(operand.source);
      tensors.push_back({{"name", valid_utf8(source.name)},
                         {"elements", element_count(source)},
                         {"types", std::move(types)},
                         {"bits", operand.elements.value},
                         {"scale_bits", operand.scales.value}});
    }
    json[std::string(monet::name_of(static_cast<OperandRole>(r)))] = {
        {"bits", role.elements.value},        {"scale_bits", role.scales.value},
        {"largest_bits", role.largest.value}, {"copies", role.copies()},
        {"read_bits", role.read.value},       {"live_bits_at_peak", role.peak_live.value},
        {"tensors", std::move(tensors)}};
  }
  return json;
}

Json statistics_json(const TrainingGraph& step, const TrainingGraph& folded, bool reuse_operands,
                     const Provenance& provenance) {
  const MacSplit macs_of = count_macs(step.graph);
  Json stored = stored_json(folded);
  Json layers = Json::array();
  for (const Operator& op : step.graph.operators()) {
    layers.push_back({{"name", valid_utf8(op.name)},
                      {"op_type", valid_utf8(op.op_type)},
                      {"phase", phase_of(op)},
                      {"macs", macs(op.nest)}});
  }
  Json macs_json = {{"forward", macs_of.forward},
                    {"backward_input", macs_of.backward_input},
                    {"backward_weight", macs_of.backward_weight}};
  if (macs_of.update != 0) // only for optimisers with products
    macs_json["update"] = macs_of.update;
  macs_json["total"] =
      macs_of.forward + macs_of.backward_input + macs_of.backward_weight + macs_of.update;
  Json json = {{"schema_version", 1},
               {"name", valid_utf8(step.graph.name)},
               {"kind", step.training ? "training" : "inference"},
               {"parameters", parameter_count(step.graph)},
               {"trained_parameters", trained_count(step)},
               {"macs", std::move(macs_json)},
               {"operators", operators_json(step.graph)},
               {"tensor_bytes", tensor_bytes_json(folded)},
               {"stored_activations_bytes", folded.stored_bytes},
               {"stored_activations", std::move(stored)},
               {"memory", graph_memory_json(folded, reuse_operands)},
               {"product_operands", roles_json(folded, reuse_operands)},
               {"layers", std::move(layers)}};
  if (!step.graph.buffers.empty())
    json["buffers"] = buffers_json(step.graph);
  json["provenance"] = provenance_json(provenance);
  return json;
}

void add_memory_rows(const Json& memory, std::vector<std::vector<std::string>>& rows) {
  const auto bytes = [&](const char* key) {
    return human_bytes(memory.at(key).get<std::int64_t>());
  };
  rows.push_back({"peak of live memory", bytes("peak_bytes")});
  const std::string host = std::string(monet::name_of(MemoryOwner::offloaded_activations));
  for (const auto& [key, value] : memory.at("peak").items()) {
    const std::string owner = key.substr(0, key.rfind("_bytes"));
    rows.push_back({owner == host ? "  in the host, additionally" : "  " + owner,
                    human_bytes(value.get<std::int64_t>())});
  }
  rows.push_back({"  at", printable(memory.at("peak_operator").get_ref<const std::string&>())});
  rows.push_back(
      {"arena without parameters and states",
       memory.at("arena_bytes") == memory.at("arena_bound_bytes")
           ? bytes("arena_bytes") + ", the minimum"
           : fmt::format("{}, at least {}", bytes("arena_bytes"), bytes("arena_bound_bytes"))});
}

void add_operand_rows(const Json& operands, std::vector<std::vector<std::string>>& rows) {
  for (const auto& [role, sums] : operands.items()) {
    if (!sums.is_object())
      continue;
    const auto bits = [&](const char* key) { return Bits{sums.at(key).get<std::int64_t>()}; };
    const std::int64_t copies = sums.at("copies").get<std::int64_t>();
    std::string text = human_bytes(bytes_of(bits("bits") + bits("scale_bits")));
    if (bits("scale_bits").value > 0)
      text += fmt::format(", scales {}", human_bytes(bytes_of(bits("scale_bits"))));
    if (copies > 0)
      text += fmt::format(", {} {}", copies, copies == 1 ? "copy" : "copies");
    rows.push_back({role + " that products read", text});
  }
}

std::string statistics_table(const Json& json) {
  const auto count = [](const Json& value) { return group_digits(value.get<std::int64_t>()); };
  std::vector<std::vector<std::string>> rows{{"", ""}};
  rows.push_back({"parameters", count(json.at("parameters"))});
  if (json.at("trained_parameters") != json.at("parameters"))
    rows.push_back({"trained parameters", count(json.at("trained_parameters"))});
  for (const auto& [key, value] : json.at("macs").items())
    rows.push_back({"MACs " + key, count(value)});
  for (const auto& [key, value] : json.at("tensor_bytes").items()) {
    rows.push_back(
        {"bytes of " + key.substr(0, key.rfind("_bytes")), human_bytes(value.get<std::int64_t>())});
  }
  rows.push_back({"stored activations",
                  fmt::format("{} in {} tensors",
                              human_bytes(json.at("stored_activations_bytes").get<std::int64_t>()),
                              json.at("stored_activations").size())});
  add_memory_rows(json.at("memory"), rows);
  add_operand_rows(json.at("product_operands"), rows);
  rows[0] = {printable(json.at("name").get_ref<const std::string&>()),
             json.at("kind").get<std::string>()};
  std::string text = aligned_table(rows) + "\n";
  if (json.contains("buffers") && json.at("kind") == "training")
    text += buffers_line(json.at("buffers")) + "\n";

  std::vector<std::vector<std::string>> operators{{"operators", "phase", "count"}};
  for (const auto& [phase, types] : json.at("operators").items()) {
    for (const auto& [type, number] : types.items()) {
      operators.push_back({printable(type), phase, count(number)});
    }
  }
  return text + aligned_table(operators);
}

std::string_view name_of(GradientOf of) {
  return of == GradientOf::weight ? "ConvGradWeight" : "ConvGradInput";
}

/// Report on a network that is already a training step: recognised and other operators, with
/// reasons.
Json foreign_json(const ForeignReport& report) {
  Json recognised = Json::array();
  for (const RecognisedGradient& gradient : report.recognised) {
    recognised.push_back({{"node", valid_utf8(gradient.node)},
                          {"as", name_of(gradient.of)},
                          {"replaces_nodes", gradient.replaced},
                          {"proven_equal", gradient.deviation.empty()},
                          {"deviation", gradient.deviation}});
  }
  Json kept = Json::array();
  for (const KeptOperator& op : report.kept)
    kept.push_back({{"node", valid_utf8(op.node)}, {"why", valid_utf8(op.why)}});
  return {{"recognised", std::move(recognised)}, {"costed_as_they_stand", std::move(kept)}};
}

std::string foreign_table(const ForeignReport& report) {
  std::map<std::pair<std::string, std::string>, std::pair<int, int>> counts; // gradients and nodes
  for (const RecognisedGradient& gradient : report.recognised) {
    const std::string how = gradient.deviation.empty()
                                ? "proven equal"
                                : "recognised, but deviates: " + gradient.deviation;
    auto& [gradients, nodes] = counts[{std::string(name_of(gradient.of)), how}];
    ++gradients;
    nodes += gradient.replaced;
  }
  std::vector<std::vector<std::string>> rows{{"recognised", "count", "nodes", "how"}};
  for (const auto& [key, count] : counts)
    rows.push_back({key.first, group_digits(count.first), group_digits(count.second), key.second});
  std::string text = "\n" + aligned_table(rows);
  for (const KeptOperator& op : report.kept)
    text += fmt::format("costed unchanged: {}: {}\n", printable(op.node), printable(op.why));
  return text;
}

/// Handles alternating steps: statistics of each, and execution of all on the same weights.
int run_alternating_graphs(const GraphArguments& arguments, const std::vector<AlternateStep>& steps,
                           Session& session) {
  if (!arguments.output.empty() || !arguments.picture.empty())
    throw UsageError("-o and --svg write one step; the training file has a list of them");
  if (!arguments.options.precision.empty())
    throw UsageError("--precision: the training file has 'precision:'");
  OnnxReadOptions reading = arguments.options.options();
  for (const AlternateStep& step : steps) {
    const TrainableOptions& named = step.options.trainable;
    reading.parameters.insert(reading.parameters.end(), named.parameters.begin(),
                              named.parameters.end());
    reading.buffers.insert(reading.buffers.end(), named.buffers.begin(), named.buffers.end());
  }
  const Graph network = read_network(arguments.network, reading);
  const auto check = [](const TrainingGraph& made) { verify(made); };
  std::vector<TrainingGraph> graphs;
  Json all = Json::array();
  std::string text;
  for (const AlternateStep& step : steps) {
    graphs.push_back(session.stage(
        step.name + ": graph", [&] { return make_training_graph(network, step.options); }, check));
    const TrainingGraph folded = session.stage(
        step.name + ": fold views", [&] { return fold_views(graphs.back()); }, check);
    Json json = statistics_json(graphs.back(), folded, arguments.in_place,
                                provenance_of({arguments.network, arguments.training}));
    text += fmt::format("step '{}', {} in a row\n", printable(step.name), step.repeat) +
            statistics_table(json) + "\n";
    all.push_back({{"step", valid_utf8(step.name)}, {"repeat", step.repeat}});
    all.back().update(json);
  }
  Json result = {{"schema_version", 1},
                 {"name", valid_utf8(network.name)},
                 {"kind", "alternating"},
                 {"steps", std::move(all)}};
  if (arguments.execute.execute) {
    result["execution"] =
        execute_alternating(graphs, steps, arguments.network, arguments.execute, session);
    text += alternating_table(result["execution"]);
  }
  write_output(arguments.json, result, text);
  return kExitOk;
}

/// Handles one step: statistics, execution, and the files of it.
int run_single_graph(const GraphArguments& arguments, Session& session) {
  std::vector<std::string> files{arguments.network};
  if (!arguments.training.empty())
    files.push_back(arguments.training);
  ProblemList problems;
  session.progress.stage("read files");
  auto options = collecting(problems, [&] {
    return arguments.training.empty() ? TrainingOptions{}
                                      : load_training_options(arguments.training);
  });
  if (options && !arguments.options.precision.empty()) {
    if (!arguments.training.empty())
      throw UsageError("--precision: the training file has 'precision:'");
    options->precision = arguments.options.precision_or_files();
  }
  OnnxReadOptions reading = arguments.options.options();
  if (options && !arguments.inference)
    read_for(reading, *options);
  const auto network =
      collecting(problems, [&] { return read_network(arguments.network, reading); });
  problems.throw_if_any();

  ForeignReport foreign; // empty with --inference, which keeps a file's operators
  const Graph graph =
      arguments.inference ? *network : recognise(*network, !arguments.training.empty(), foreign);
  const auto check = [](const TrainingGraph& made) { verify(made); };
  const TrainingGraph step = session.stage(
      "graph",
      [&] {
        return arguments.inference || foreign.is_training_step
                   ? make_inference_graph(graph, options->precision)
                   : make_step(graph, *options, {arguments.training});
      },
      check);
  const TrainingGraph folded = session.stage(
      "fold views", [&] { return fold_views(step); }, check);
  Json statistics = statistics_json(step, folded, arguments.in_place, provenance_of(files));
  if (arguments.execute.execute) {
    statistics["execution"] = execute_step(step, arguments.network, arguments.execute, session);
  }
  if (foreign.is_training_step) {
    statistics["kind"] = "training step of the file";
    statistics["foreign"] = foreign_json(foreign);
  }
  if (!arguments.output.empty())
    write_file_atomically(arguments.output, write_onnx(step.graph));
  if (!arguments.picture.empty())
    write_file_atomically(arguments.picture, graph_svg(folded));
  write_output(
      arguments.json, statistics,
      statistics_table(statistics) + (foreign.is_training_step ? foreign_table(foreign) : "") +
          (arguments.execute.execute ? "\n" + execution_table(statistics["execution"]) : ""));
  return kExitOk;
}

int run_graph(const GraphArguments& arguments, Session& session) {
  if (arguments.operators) {
    print_result(operator_table());
    return kExitOk;
  }
  if (!arguments.training.empty()) {
    if (const auto steps = load_alternate_steps(arguments.training); !steps.empty())
      return run_alternating_graphs(arguments, steps, session);
  }
  return run_single_graph(arguments, session);
}

} // namespace

void add_graph_command(Command& monet) {
  auto arguments = std::make_shared<GraphArguments>();
  Command& command = monet.add_command("graph", "Build the training graph of a network");
  command.add("network", &arguments->network, "Network", {.type = "NET.onnx"});
  command.add("--operators", &arguments->operators, "List the supported operators as Markdown");
  command.add("--training", &arguments->training, "Training file: options of the training step",
              {.type = "T.yaml"});
  command.add("--inference", &arguments->inference, "Build the forward pass only",
              {.excludes = "--training"});
  arguments->options.add_to(command);
  command.add("-o,--output", &arguments->output, "Write the graph as ONNX",
              {.type = "OUT.onnx", .output = Output::file});
  command.add("--in-place", &arguments->in_place,
              "Allow element-wise operators to overwrite an operand after its last use");
  command.add("--svg", &arguments->picture, "Write a picture of the graph",
              {.type = "OUT.svg", .output = Output::file});
  command.add("--json", &arguments->json, "Write the statistics as JSON; -: standard output",
              {.type = "FILE", .output = Output::file});
  arguments->execute.add_to(command);
  command.footer =
      "Example: monet graph data/workload/resnet18_cifar.onnx --batch 4 -o training.onnx";
  command.missing = [arguments] {
    return arguments->operators || !arguments->network.empty() ? "" : "network";
  };
  command.action = [arguments](Session& session) { return run_graph(*arguments, session); };
}

} // namespace monet::cli
