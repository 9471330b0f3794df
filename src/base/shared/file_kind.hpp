// Kinds of given files: binary formats by their first bytes, YAML files by their top-level keys.
// Readers that get a file of another kind report it as one error.
#pragma once

#include "monet/base/yaml.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace monet {

/// Format of a binary file, for error messages.
struct BinaryFormat {
  std::string_view name; ///< with an article: "an ONNX model"
  std::string_view hint; ///< what to do with such a file; may be empty
  bool is_onnx = false;
};

/// Format of a binary file that begins with `bytes`; nullopt for text and for unknown formats.
std::optional<BinaryFormat> binary_format(std::string_view bytes);

/// Whether a text begins as the JSON results of MONET do. A large one exceeds the limits of YAML.
bool begins_as_result(std::string_view text);

/// Kinds of YAML files, in the order in which a file is compared with them.
enum class FileKind {
  result,
  space,
  backward_study,
  experiment,
  cluster_experiment,
  training_experiment,
  cluster,
  kernel_table,
  system,
  core,
  stacks,
  products,
  training,
  mapping,
  layers
};

/// Name without an article: "system file".
std::string_view name_of_kind(FileKind kind);

/// Kind that the top-level keys show; nullopt if they show none.
std::optional<FileKind> kind_of_file(const YamlNode& root);

/// Throws InputError if the top-level keys show a kind, and none of the expected ones. A file of an
/// unknown kind passes: its reader reports what is wrong with it.
void require_kind(const YamlNode& root, std::initializer_list<FileKind> expected);

} // namespace monet
