// Recognises kinds of YAML files by their top-level keys (shared/file_kind.hpp). Every reader of a
// whole file uses it.
#include "base/shared/file_kind.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

namespace monet {

namespace {

/// Kind of file, with the keys that show it.
struct Shown {
  FileKind kind;
  std::string_view name; ///< without an article
  std::string_view takers;
  std::array<std::string_view, 2> keys; ///< a file has all of them; "" stands for none
  bool is_list = false; ///< the file is a list, whose first item has one of the keys
};

constexpr std::array kShown{
    Shown{FileKind::result, "result file", "monet report takes it", {"schema_version"}},
    Shown{FileKind::space, "hardware space", "monet explore takes it", {"parameters"}},
    Shown{FileKind::backward_study,
          "study of backward passes",
          "monet backward --study takes it",
          {"machines", "networks"}},
    Shown{FileKind::experiment,
          "experiment",
          "monet run and monet optimise take it",
          {"workload", "hardware"}},
    Shown{FileKind::cluster_experiment,
          "cluster experiment",
          "monet cluster and monet optimise parallelism take it",
          {"workload", "cluster"}},
    Shown{FileKind::training_experiment,
          "training experiment",
          "monet train takes it",
          {"network", "data"}},
    Shown{
        FileKind::cluster, "cluster file", "'cluster' of a cluster experiment names it", {"tiers"}},
    Shown{
        FileKind::kernel_table, "kernel table", "'device' of a cluster names it", {"peak_tflops"}},
    Shown{FileKind::system,
          "system file",
          "--hardware of monet schedule and 'hardware' of an experiment take it",
          {"cores"}},
    Shown{FileKind::core,
          "core file",
          "--hardware of monet core and monet schedule take it",
          {"memories"}},
    Shown{FileKind::stacks,
          "stacks file",
          "--stacks of monet schedule and 'stacks' of an experiment take it",
          {"stacks"}},
    Shown{FileKind::products,
          "table of products",
          "--workload of monet backward takes it",
          {"layers"}},
    Shown{FileKind::training,
          "training file",
          "--training and 'training' of an experiment take it",
          {"loss"}},
    Shown{FileKind::training,
          "training file",
          "--training and 'training' of an experiment take it",
          {"optimizer"}},
    Shown{FileKind::mapping,
          "mapping file",
          "--mapping and 'mapping' of an experiment take it",
          {"core_allocation", "spatial_mapping"},
          true},
    Shown{FileKind::mapping,
          "mapping file",
          "--mapping and 'mapping' of an experiment take it",
          {"memory_operand_links", "intra_core_tiling"},
          true},
    Shown{FileKind::layers,
          "list of layers",
          "--workload of monet core takes it",
          {"operator_type", "equation"},
          true},
    Shown{FileKind::training,
          "training file of several steps",
          "'training' of an experiment takes it",
          {"loss", "optimizer"},
          true}};

bool has_key(const YamlNode& node, std::string_view key) {
  return std::ranges::any_of(node.entries,
                             [&](const YamlNode::Entry& entry) { return entry.key == key; });
}

bool shows(const YamlNode& root, const Shown& shown) {
  const auto has = [&](const YamlNode& node) {
    return [&node](std::string_view key) { return !key.empty() && has_key(node, key); };
  };
  if (shown.is_list)
    return !root.items.empty() && std::ranges::any_of(shown.keys, has(root.items.front()));
  return std::ranges::all_of(
      shown.keys, [&](std::string_view key) { return key.empty() || has_key(root, key); });
}

const Shown* find_shown(const YamlNode& root) {
  const auto found =
      std::ranges::find_if(kShown, [&](const Shown& shown) { return shows(root, shown); });
  return found == kShown.end() ? nullptr : &*found;
}

std::string with_article(std::string_view name) {
  const bool vowel = std::string_view("aeiou").find(name.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", name);
}

} // namespace

std::string_view name_of_kind(FileKind kind) {
  return std::ranges::find(kShown, kind, &Shown::kind)->name;
}

std::optional<FileKind> kind_of_file(const YamlNode& root) {
  const Shown* shown = find_shown(root);
  return shown == nullptr ? std::nullopt : std::optional(shown->kind);
}

void require_kind(const YamlNode& root, std::initializer_list<FileKind> expected) {
  for (const Shown& shown : kShown) {
    if (std::ranges::find(expected, shown.kind) != expected.end() && shows(root, shown))
      return;
  }
  const Shown* shown = find_shown(root);
  if (shown == nullptr)
    return;
  std::string names;
  for (const FileKind kind : expected)
    names += (names.empty() ? "" : " or ") + with_article(name_of_kind(kind));
  throw InputError(
      {root.where.origin},
      fmt::format("this is {}, where {} is expected", with_article(shown->name), names),
      shown->takers);
}

} // namespace monet
