// Reads the numbers of initialisers, also from external data, for stages that compute with them.
#include "base/shared/checked.hpp"
#include "base/shared/text.hpp"
#include "workload/onnx/model.hpp"
#include "workload/onnx/proto.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/warnings.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace monet {

namespace {

namespace fs = std::filesystem;

class WeightReader {
public:
  WeightReader(const onnx::ModelProto& proto, std::string origin, const NeedsNumbers& needs)
      : origin_(std::move(origin)), needs_(needs) {
    for (const auto& entry : proto.metadata_props())
      is_stripped_ = is_stripped_ || (entry.key() == onnx_file::kWeights &&
                                      entry.value() == onnx_file::kStrippedWeights);
    for (const onnx::NodeProto& node : proto.graph().node()) {
      if (node.op_type() == ops::Identity && node.input_size() == 1 && node.output_size() == 1)
        copies_.emplace(node.input(0), node.output(0));
    }
  }

  void read(const onnx::TensorProto& tensor) {
    if (!is_needed(tensor.name()))
      return;
    const auto type = onnx_file::element_type(tensor.data_type());
    if (!type)
      return;
    const bool external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
    auto numbers =
        external ? external_numbers(tensor, *type) : onnx_file::stored_numbers(tensor, *type);
    if (!numbers)
      return;
    const std::size_t count = std::visit([](const auto& list) { return list.size(); }, *numbers);
    const std::int64_t elements =
        checked_product(Integers(tensor.dims().begin(), tensor.dims().end()));
    if (count == 0 && elements != 0) {
      ++stripped_;
      return;
    }
    if (static_cast<std::int64_t>(count) != elements)
      fail(tensor, fmt::format("{} values are stored for {} elements", count, elements));
    weights_.insert_or_assign(tensor.name(), std::move(*numbers));
  }

  std::map<std::string, ConstantValues> release() {
    problems_.throw_if_any();
    for (const auto& [original, copy] : copies_) {
      const auto found = weights_.find(original);
      if (found != weights_.end() && (!needs_ || needs_(copy)))
        weights_.emplace(copy, found->second);
    }
    if (stripped_ > 0)
      warn({origin_, 0, 0, {}},
           fmt::format("its weights were omitted on purpose: {} tensors have no numbers",
                       stripped_));
    return std::move(weights_);
  }

private:
  bool is_needed(const std::string& name) const {
    if (!needs_ || needs_(name))
      return true;
    const auto [first, last] = copies_.equal_range(name);
    return std::any_of(first, last, [&](const auto& copy) { return needs_(copy.second); });
  }

  [[noreturn]] void fail(const onnx::TensorProto& tensor, std::string_view what) const {
    throw InputError(place_of(tensor), what);
  }
  SourceLoc place_of(const onnx::TensorProto& tensor) const {
    return {origin_, 0, 0, fmt::format("tensor '{}'", tensor.name())};
  }

  std::size_t number_of(const onnx::TensorProto& tensor, const std::string& text) const {
    const auto number = number_in<std::size_t>(text);
    if (!number)
      fail(tensor, fmt::format("'{}' is not a position in external data", text));
    return *number;
  }

  /// Path of external data without symbolic links; nullopt if the file does not exist. It must be a
  /// regular file in the model's folder or a subfolder.
  std::optional<std::string> external_path(const onnx::TensorProto& tensor,
                                           const std::string& location) const {
    if (location.find('\0') != std::string::npos)
      fail(tensor, "the location of external data contains a NUL character");
    const fs::path path(location);
    bool is_inside = !path.empty() && path.is_relative() &&
                     std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
    std::error_code error;
    fs::path file;
    if (is_inside) {
      file = fs::canonical(resolve_beside(origin_, location), error);
      if (error == std::errc::no_such_file_or_directory)
        return std::nullopt;
      if (error)
        fail(tensor,
             fmt::format("external data '{:.200}' cannot be read: {}", location, error.message()));
      const fs::path folder = fs::canonical(resolve_beside(origin_, "."), error);
      is_inside =
          !error && std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
                        folder.end();
    }
    if (!is_inside)
      fail(tensor, fmt::format("external data '{}' lie outside the model's folder", location));
    if (!fs::is_regular_file(file, error))
      fail(tensor, fmt::format("external data '{}' are not a regular file", location));
    return file.string();
  }

  /// Contents of external data; null if the file does not exist.
  const std::string* external_file(const onnx::TensorProto& tensor, const std::string& location) {
    const std::optional<std::string> path = external_path(tensor, location);
    if (!path)
      return nullptr;
    const auto known = files_.find(*path);
    if (known != files_.end())
      return &known->second;
    return &files_.emplace(*path, read_file(*path, std::size_t{1} << 36)).first->second;
  }

  std::optional<ConstantValues> external_numbers(const onnx::TensorProto& tensor,
                                                 ElementType type) {
    std::optional<std::string> location;
    std::size_t offset = 0;
    std::optional<std::size_t> length;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location")
        location = entry.value();
      else if (entry.key() == "offset")
        offset = number_of(tensor, entry.value());
      else if (entry.key() == "length")
        length = number_of(tensor, entry.value());
    }
    const std::string* file = location ? external_file(tensor, *location) : nullptr;
    if (file == nullptr) {
      if (location && !is_stripped_)
        problems_.add(place_of(tensor), fmt::format("external data '{}' are missing", *location),
                      "the file has to be in the folder of the network");
      else
        ++stripped_;
      return std::nullopt;
    }
    if (offset > file->size() || length.value_or(0) > file->size() - offset)
      fail(tensor, fmt::format("external data extend beyond the end of '{}'", *location));
    return onnx_file::raw_numbers(
        std::string_view(*file).substr(offset, length.value_or(std::string::npos)), type);
  }

  std::string origin_;
  std::map<std::string, std::string> files_; ///< contents of external data by path
  const NeedsNumbers& needs_;
  std::multimap<std::string, std::string> copies_; ///< names under which initialisers are copied
  bool is_stripped_ = false;                       ///< the file declares its external data omitted
  int stripped_ = 0;                               ///< tensors without numbers
  ProblemList problems_;
  std::map<std::string, ConstantValues> weights_;
};

} // namespace

std::map<std::string, ConstantValues> read_onnx_weights_bytes(std::string_view bytes,
                                                              const std::string& origin,
                                                              const NeedsNumbers& needs) {
  const onnx::ModelProto proto = onnx_file::parse_proto(bytes, origin);
  WeightReader reader(proto, origin, needs);
  for (const onnx::TensorProto& tensor : proto.graph().initializer())
    reader.read(tensor);
  return reader.release();
}

std::map<std::string, ConstantValues> read_onnx_weights(const std::string& path,
                                                        const NeedsNumbers& needs) {
  return read_onnx_weights_bytes(read_file(path), path, needs);
}

} // namespace monet
