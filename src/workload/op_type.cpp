// Types of operators: names that are stored once. Names of the catalogue are constants; readers of
// files add others.
#include "workload/shared/op_types.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>

namespace monet {

namespace {

constexpr OpType::Name kEmpty{"", -1};

OpType find_or_add(std::string_view name) {
  if (name.empty())
    return OpType(kEmpty);
  static const auto kKnown = [] {
    std::unordered_map<std::string_view, OpType> known;
    for (const OpType type : ops::kAll)
      known.emplace(type.name(), type);
    return known;
  }();
  if (const auto found = kKnown.find(name); found != kKnown.end())
    return found->second;
  // Nodes of a map stay where they are, and so do the texts in them.
  static std::mutex mutex;
  static std::map<std::string, OpType::Name, std::less<>> others;
  const std::lock_guard lock(mutex);
  auto at = others.find(name);
  if (at == others.end()) {
    at = others.emplace(name, OpType::Name{"", -1}).first;
    at->second.text = at->first;
  }
  return OpType(at->second);
}

} // namespace

OpType::OpType(std::string_view name) : OpType(find_or_add(name)) {}

} // namespace monet
