// Finds initialisers with equal numbers, bit for bit, or transposed: an exporter may write one
// parameter twice if it has two readers. parse.cpp collects them; tie_weights.cpp decides.
#include "base/shared/checked.hpp"
#include "workload/onnx/model.hpp"
#include "workload/onnx/proto.hpp"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

namespace monet::onnx_file {

namespace {

/// Minimum size; smaller tensors may be equal by chance.
constexpr std::int64_t kMinElements = 4;
/// Maximum number of distinct initialisers with one shape and sample that are compared.
constexpr std::size_t kMaxCandidates = 16;
/// Maximum number of elements in a sample.
constexpr std::int64_t kSampleSize = 16;

/// Stored bytes of an initialiser, row-major.
struct Stored {
  const std::string* name = nullptr;
  Integers shape;
  std::string_view bytes;
  std::size_t width = 0; ///< bytes of an element

  bool is_matrix() const { return shape.size() == 2; }
  std::string_view element(std::int64_t i) const {
    return bytes.substr(static_cast<std::size_t>(i) * width, width);
  }
};

template <class Field>
std::string_view bytes_of(const Field& field) {
  return {reinterpret_cast<const char*>(field.data()),
          static_cast<std::size_t>(field.size()) * sizeof(*field.data())};
}

/// Bytes of a floating tensor stored in the message; empty if they are stored elsewhere.
std::string_view stored_bytes(const onnx::TensorProto& tensor) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return {};
  if (tensor.has_raw_data())
    return tensor.raw_data();
  switch (tensor.data_type()) {
  case onnx::TensorProto::FLOAT:
    return bytes_of(tensor.float_data());
  case onnx::TensorProto::DOUBLE:
    return bytes_of(tensor.double_data());
  default: // 16-bit numbers, each in an int32
    return bytes_of(tensor.int32_data());
  }
}

bool is_constant(const Stored& stored) {
  return std::memcmp(stored.bytes.data(), stored.bytes.data() + stored.width,
                     stored.bytes.size() - stored.width) == 0;
}

/// Bytes of the initialiser, if its floating numbers are distinctive enough to compare.
std::optional<Stored> read_stored(const onnx::TensorProto& tensor) {
  const auto type = element_type(tensor.data_type());
  if (!type || !is_floating(*type))
    return std::nullopt;
  Stored stored{&tensor.name(), Integers(tensor.dims().begin(), tensor.dims().end()),
                stored_bytes(tensor), 0};
  const std::int64_t count = checked_product(stored.shape);
  if (count < kMinElements || stored.bytes.empty() ||
      stored.bytes.size() % static_cast<std::size_t>(count) != 0)
    return std::nullopt;
  stored.width = stored.bytes.size() / static_cast<std::size_t>(count);
  if (is_constant(stored))
    return std::nullopt;
  return stored;
}

/// Some elements; for a matrix those of its diagonal, which its transpose shares.
std::string sample_of(const Stored& stored) {
  const std::int64_t count = stored.is_matrix() ? std::min(stored.shape[0], stored.shape[1])
                                                : checked_product(stored.shape);
  const std::int64_t stride = stored.is_matrix() ? stored.shape[1] + 1 : 1;
  const std::int64_t step = std::max<std::int64_t>(1, count / kSampleSize);
  std::string sample;
  for (std::int64_t i = 0; i < count && i / step < kSampleSize; i += step)
    sample += stored.element(i * stride);
  return sample;
}

/// Whether `a` is the transpose of `b`. Compares square blocks, which avoids reading single
/// columns.
bool is_transpose(const Stored& a, const Stored& b) {
  constexpr std::int64_t kSquare = 32;
  const std::int64_t rows = a.shape[0];
  const std::int64_t columns = a.shape[1];
  for (std::int64_t row = 0; row < rows; row += kSquare) {
    for (std::int64_t column = 0; column < columns; column += kSquare) {
      for (std::int64_t i = row; i < std::min(rows, row + kSquare); ++i) {
        for (std::int64_t j = column; j < std::min(columns, column + kSquare); ++j) {
          if (a.element(i * columns + j) != b.element(j * rows + i))
            return false;
        }
      }
    }
  }
  return true;
}

enum class Relation { none, equal, transposed };

Relation relation_of(const Stored& a, const Stored& b) {
  if (a.width != b.width)
    return Relation::none;
  if (a.shape == b.shape && a.bytes == b.bytes)
    return Relation::equal;
  if (a.is_matrix() && b.is_matrix() && a.shape[0] == b.shape[1] && a.shape[1] == b.shape[0] &&
      is_transpose(a, b))
    return Relation::transposed;
  return Relation::none;
}

using Key = std::tuple<int, Integers, std::string>; // element type, sorted shape, sample

Key key_of(const onnx::TensorProto& tensor, const Stored& stored) {
  Integers shape = stored.shape;
  if (stored.is_matrix())
    std::ranges::sort(shape);
  return {tensor.data_type(), std::move(shape), sample_of(stored)};
}

} // namespace

std::vector<EqualWeights> find_equal_weights(const onnx::GraphProto& graph) {
  std::map<Key, std::vector<Stored>> known;
  std::vector<EqualWeights> found;
  const auto look_up = [&](const onnx::TensorProto& tensor) {
    const std::optional<Stored> stored = read_stored(tensor);
    if (!stored)
      return;
    std::vector<Stored>& candidates = known[key_of(tensor, *stored)];
    for (const Stored& other : candidates) {
      const Relation relation = relation_of(other, *stored);
      if (relation == Relation::none)
        continue;
      found.push_back({tensor.name(), *other.name, relation == Relation::transposed});
      return;
    }
    if (candidates.size() < kMaxCandidates)
      candidates.push_back(*stored);
  };
  for (const bool folded : {false, true}) { // the module's name is preferred
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      if (is_folded_name(tensor.name()) == folded)
        look_up(tensor);
    }
  }
  return found;
}

} // namespace monet::onnx_file
