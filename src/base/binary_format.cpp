// Recognises binary formats by their first bytes (shared/file_kind.hpp), for readers that expect
// another format.
#include "base/shared/file_kind.hpp"

#include <array>

namespace monet {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kOnnxHint = "monet graph, and --workload of monet schedule and monet "
                                       "core take it; an experiment names it in "
                                       "'workload: {network: ...}'";
constexpr std::string_view kPytorchHint =
    "export the network with torch.onnx.export, and give the .onnx file";

struct Signature {
  std::string_view bytes;
  BinaryFormat format;
};

constexpr std::array kSignatures{
    Signature{"\x89PNG\r\n\x1a\n"sv, {"a PNG picture", ""}},
    Signature{"\xFF\xD8\xFF"sv, {"a JPEG picture", ""}},
    Signature{"GIF8"sv, {"a GIF picture", ""}},
    Signature{"%PDF-"sv, {"a PDF document", ""}},
    Signature{"\x1F\x8B"sv, {"a gzip archive", "unpack it"}},
    Signature{"BZh"sv, {"a bzip2 archive", "unpack it"}},
    Signature{"\xFD"
              "7zXZ"sv,
              {"an xz archive", "unpack it"}},
    Signature{"\x28\xB5\x2F\xFD"sv, {"a Zstandard archive", "unpack it"}},
    Signature{"\x93NUMPY"sv, {"a NumPy array", ""}},
    Signature{"\x89HDF\r\n\x1a\n"sv,
              {"an HDF5 file", "export the network to ONNX, for example with tf2onnx"}},
    Signature{"SQLite format 3\0"sv, {"an SQLite database", "monet explore keeps its stores so"}},
    Signature{"\x7F"
              "ELF"sv,
              {"a program", ""}},
    Signature{"\xFF\xFE"sv, {"UTF-16 text", "save it as UTF-8"}},
    Signature{"\xFE\xFF"sv, {"UTF-16 text", "save it as UTF-8"}}};

/// Whether the first fields of a protobuf are those of an ONNX model: a small IR version, then
/// another field of the model.
bool begins_as_onnx(std::string_view bytes) {
  constexpr std::string_view kNextTags = "\x12\x1A\x22\x28\x32\x3A\x42\x72";
  constexpr char kNewestVersion = 64;
  return bytes.size() >= 3 && bytes[0] == '\x08' && bytes[1] > 0 && bytes[1] < kNewestVersion &&
         kNextTags.find(bytes[2]) != std::string_view::npos;
}

BinaryFormat zip_format(std::string_view bytes) {
  constexpr std::size_t kFirstEntries = 4096;
  const std::string_view begin = bytes.substr(0, kFirstEntries);
  if (begin.find("data.pkl") != std::string_view::npos)
    return {"a PyTorch file (a zip archive)", kPytorchHint};
  if (begin.find(".npy") != std::string_view::npos)
    return {"an archive of NumPy arrays (.npz)", ""};
  if (begin.find(".keras") != std::string_view::npos ||
      begin.find("metadata.json") != std::string_view::npos)
    return {"a Keras file (a zip archive)", "export the network to ONNX"};
  return {"a zip archive", "unpack it; a .pt file of PyTorch must be exported with "
                           "torch.onnx.export"};
}

} // namespace

std::optional<BinaryFormat> binary_format(std::string_view bytes) {
  if (begins_as_onnx(bytes))
    return BinaryFormat{"an ONNX model", kOnnxHint, true};
  if (bytes.starts_with("PK\x03\x04"sv))
    return zip_format(bytes);
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5)
    return BinaryFormat{"a Python pickle, as PyTorch writes it", kPytorchHint};
  if (bytes.size() > 8 && bytes.substr(4, 4) == "TFL3")
    return BinaryFormat{"a TensorFlow Lite model", "export the network to ONNX"};
  for (const Signature& signature : kSignatures) {
    if (bytes.starts_with(signature.bytes))
      return signature.format;
  }
  return std::nullopt;
}

bool begins_as_result(std::string_view text) {
  return text.starts_with(R"({"schema_version":)");
}

} // namespace monet
