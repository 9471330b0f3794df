// The ONNX reader, the folding of views and the writer on any bytes: the answer is a graph that
// holds its invariants or an InputError.
#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/onnx_writer.hpp"
#include "monet/workload/views.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  monet::OnnxReadOptions options;
  options.batch = 2;
  try {
    const monet::Graph graph = monet::read_onnx_bytes(bytes, "fuzz.onnx", options);
    verify(graph);
    verify(fold_views(graph));
    write_onnx(graph);
  } catch (const monet::InputError&) {
    // The only failure that bytes may cause; anything else ends the run.
  }
  return 0;
}
