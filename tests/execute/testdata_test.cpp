// ONNX's own test models (Debian package libonnx-testdata), where installed: every one that is read
// and whose operators have kernels is executed on the stored inputs, and must give the stored
// outputs.
#include "monet/base/errors.hpp"
#include "monet/execute/execute.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

namespace monet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "/usr/share/libonnx-testdata/data";
/// What ONNX's own runner allows for results stored in single precision.
constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-6;
/// Executed when this was written; fewer is a step back.
constexpr int kExecuteAtLeast = 825;
/// Stored with ONNX's first definition of align_corners, which divided by the size before rounding;
/// PyTorch and later versions divide by the size that there is.
/// An index of MaxUnpool counts through a tensor of the size that follows from the attributes, not
/// through the output of the given shape, which is where MaxPool's indices are of.
const std::set<std::string> kOtherDefinition{
    "test_maxunpool_export_with_output_shape",
    "test_resize_downsample_scales_cubic_align_corners",
    "test_resize_downsample_scales_linear_align_corners",
};

struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Proto>
std::optional<Proto> parse(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Proto proto;
  if (!file || !proto.ParseFromIstream(&file))
    return std::nullopt;
  return proto;
}

template <class Stored>
std::vector<double> from_raw(const std::string& raw) {
  std::vector<double> numbers(raw.size() / sizeof(Stored));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Stored value{};
    std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
    numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

template <class Stored, class Field>
std::vector<double> from(const onnx::TensorProto& tensor, const Field& field) {
  if (tensor.has_raw_data())
    return from_raw<Stored>(tensor.raw_data());
  return {field.begin(), field.end()};
}

std::vector<double> numbers_of(const onnx::TensorProto& tensor) {
  switch (tensor.data_type()) {
  case onnx::TensorProto::FLOAT:
    return from<float>(tensor, tensor.float_data());
  case onnx::TensorProto::DOUBLE:
    return from<double>(tensor, tensor.double_data());
  case onnx::TensorProto::INT64:
    return from<std::int64_t>(tensor, tensor.int64_data());
  case onnx::TensorProto::INT32:
    return from<std::int32_t>(tensor, tensor.int32_data());
  case onnx::TensorProto::BOOL:
    return from<std::uint8_t>(tensor, tensor.int32_data());
  default: // 8 and 16 bit arithmetic overflows and rounds, which the interpreter does not
    throw Skipped("element type");
  }
}

struct Sample {
  onnx::ModelProto model;
  std::map<std::string, onnx::TensorProto> tensors; ///< inputs, initialisers and wanted outputs
};

Sample read_sample(const fs::path& folder) {
  Sample sample;
  auto model = parse<onnx::ModelProto>(folder / "model.onnx");
  if (!model)
    throw Skipped("no model");
  sample.model = std::move(*model);
  const onnx::GraphProto& graph = sample.model.graph();
  for (const onnx::TensorProto& tensor : graph.initializer())
    sample.tensors[tensor.name()] = tensor;
  const auto load = [&](const char* kind, const auto& values) {
    int i = 0;
    for (const onnx::ValueInfoProto& value : values) {
      const fs::path path =
          folder / "test_data_set_0" / (std::string(kind) + "_" + std::to_string(i++) + ".pb");
      auto tensor = fs::exists(path) ? parse<onnx::TensorProto>(path) : std::nullopt;
      if (!value.type().has_tensor_type())
        throw Skipped("not a tensor");
      if (tensor)
        sample.tensors[value.name()] = std::move(*tensor);
    }
  };
  load("input", graph.input());
  load("output", graph.output());
  return sample;
}

/// Shapes, axes and the like are inputs of ONNX's models; for us they must be in the file.
enum class Known { nothing, integers, integers_and_scalars };

onnx::ModelProto with_known(const Sample& sample, Known known) {
  onnx::ModelProto model = sample.model;
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const onnx::ValueInfoProto& input : sample.model.graph().input()) {
    const auto found = sample.tensors.find(input.name());
    if (found == sample.tensors.end() || known == Known::nothing)
      continue;
    onnx::TensorProto tensor = found->second;
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.dims())
      count *= size;
    const bool real = tensor.data_type() == onnx::TensorProto::FLOAT;
    const bool chosen =
        real ? known == Known::integers_and_scalars && (count <= 1 || tensor.dims_size() == 1)
             : tensor.data_type() == onnx::TensorProto::INT64;
    const bool there = std::any_of(graph.initializer().begin(), graph.initializer().end(),
                                   [&](const auto& given) { return given.name() == input.name(); });
    if (!chosen || there)
      continue;
    tensor.set_name(input.name());
    *graph.add_initializer() = std::move(tensor);
  }
  return model;
}

Graph read_graph(const Sample& sample) {
  std::optional<InputError> last;
  for (const Known known : {Known::integers, Known::nothing, Known::integers_and_scalars}) {
    try {
      OnnxReadOptions options;
      options.batch = 1;
      Graph graph =
          read_onnx_bytes(with_known(sample, known).SerializeAsString(), "model.onnx", options);
      if (!graph.operators().empty())
        return graph;
    } catch (const InputError& error) {
      last = error;
    }
  }
  throw Skipped(last ? "not read: " + last->problems().front().what : "all constant");
}

void feed(Execution& execution, const Graph& graph, const Sample& sample) {
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    const auto found = sample.tensors.find(tensor.name);
    if (tensor.producer || tensor.values || found == sample.tensors.end())
      continue;
    const std::vector<double> numbers = numbers_of(found->second);
    if (static_cast<std::int64_t>(numbers.size()) != element_count(tensor))
      throw Skipped("symbolic sizes");
    execution.set(TensorId(i), numbers);
  }
}

/// Empty, or what is wrong.
std::string compare(const std::vector<double>& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size())
    return fmt::format("{} elements instead of {}", actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(actual[i] - expected[i]);
    const bool same =
        actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]));
    if (!same && !(difference <= kAbsolute + kRelative * std::abs(expected[i])))
      return fmt::format("element {} is {} instead of {}", i, actual[i], expected[i]);
  }
  return {};
}

/// The operator types of a model, as a label.
std::string label_of(const Graph& graph) {
  std::set<std::string> types;
  for (const Operator& op : graph.operators())
    types.insert(op.op_type.str());
  return types.size() == 1 ? *types.begin() : fmt::format("[{}]", fmt::join(types, " "));
}

/// Executes one model; returns its label.
std::string execute(const fs::path& folder) {
  if (kOtherDefinition.count(folder.filename().string()) != 0)
    throw Skipped("other definition");
  const Sample sample = read_sample(folder);
  const Graph graph = read_graph(sample);
  for (const Operator& op : graph.operators()) {
    if (!is_executable(op))
      throw Skipped("no kernel for " + op.op_type.str());
    const bool dropout = op.op_type == "Dropout" && op.inputs.size() > 2;
    if (dropout || op.op_type == "Bernoulli" || op.op_type.starts_with("Random"))
      throw Skipped("random numbers");
  }
  Execution execution(graph);
  feed(execution, graph, sample);
  execution.run();
  for (const onnx::ValueInfoProto& output : sample.model.graph().output()) {
    const auto id = graph.find_tensor(output.name());
    const auto expected = sample.tensors.find(output.name());
    if (!id || expected == sample.tensors.end())
      continue;
    EXPECT_EQ(compare(execution.get(*id), numbers_of(expected->second)), "")
        << folder.filename().string() << ", output " << output.name() << " of " << label_of(graph);
  }
  return label_of(graph);
}

TEST(OnnxTestData, ExecutedModelsGiveTheStoredOutputs) {
  if (!fs::exists(kFolder))
    GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<fs::path> folders;
  for (const char* part : {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(kFolder) / part))
      folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  std::map<std::string, int> executed;
  std::map<std::string, int> skipped;
  for (const fs::path& folder : folders) {
    try {
      ++executed[execute(folder)];
    } catch (const Skipped& reason) {
      ++skipped[reason.what()];
    } catch (const InputError& refusal) {
      ++skipped["refused: " + refusal.problems().front().what];
    } catch (const std::exception& problem) {
      ADD_FAILURE() << folder.filename().string() << ": " << problem.what();
    }
  }
  int total = 0;
  for (const auto& [label, count] : executed) {
    fmt::print("  {:4} {}\n", count, label);
    total += count;
  }
  for (const auto& [reason, count] : skipped)
    fmt::print("  skipped {:4}: {}\n", count, reason);
  fmt::print("  {} of {} models executed\n", total, folders.size());
  EXPECT_GE(total, kExecuteAtLeast);
}

} // namespace
} // namespace monet
