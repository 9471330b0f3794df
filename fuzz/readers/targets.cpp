// Readers of foreign files: whatever the bytes are, the answer is what they say or an InputError.
#include "base/shared/npy.hpp"
#include "readers/readers.hpp"
#include "target.hpp"
#include "workload/shared/views.hpp"

#include "monet/core_cost/backward.hpp"
#include "monet/optimise/log_search.hpp"
#include "monet/reference/stream_costs.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/onnx_writer.hpp"

namespace monet::fuzz {

namespace {

/// With the folding of views and the writer: a graph that is read holds its invariants.
void read_model(std::string_view bytes) {
  OnnxReadOptions options;
  options.batch = 2;
  const Graph graph = read_onnx_bytes(bytes, "fuzz.onnx", options);
  verify(graph);
  verify(fold_views(graph));
  write_onnx(graph);
  read_onnx_weights_bytes(bytes, "fuzz.onnx");
}

void read_npy_array(std::string_view bytes) {
  parse_npy(bytes, "fuzz.npy");
}

void read_core_costs(std::string_view text) {
  stream::parse_core_costs(text, "fuzz.json");
}

/// A log that is read can be replayed.
void read_log(std::string_view text) {
  const OperatorLog log = parse_operator_log(text, "fuzz.log");
  replay(log.problem, store_everything(log.problem));
}

/// Any table that is read has layers for a few samples, or says which one is too large.
void read_gemms(std::string_view text) {
  const GemmTable table = parse_gemm_table(text, "fuzz.yaml");
  for (const std::int64_t batch : {1, 8})
    gemm_pairs(table, batch);
}

constexpr Target kTargets[]{
    {"yaml", Format::yaml, read_yaml},
    {"onnx", Format::onnx, read_model},
    {"npy", Format::bytes, read_npy_array},
    {"operator_log", Format::json, read_log},
    {"core_costs", Format::json, read_core_costs},
    {"space", Format::yaml, read_space},
    {"gemms", Format::yaml, read_gemms},
    {"cluster", Format::yaml, read_cluster_file},
    {"kernel_table", Format::yaml, read_kernel_file},
    {"parallel", Format::yaml, read_parallel},
    {"formats", Format::bytes, quantise_array},
    {"cifar10", Format::bytes, read_cifar10},
    {"idx", Format::bytes, read_idx},
    {"npy_images", Format::bytes, read_npy_images},
    {"execute", Format::onnx, execute_network},
};

} // namespace

std::span<const Target> targets() {
  return kTargets;
}

} // namespace monet::fuzz
