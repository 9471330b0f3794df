#include "monet/tiling/stacks_file.hpp"

#include "monet/base/text.hpp"
#include "monet/base/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace monet {

namespace {

StacksFile read(const YamlNode& root, const std::string& origin) {
  ProblemList problems;
  StacksFile file{origin, {}};
  const YamlNode* stacks = &root; // the list alone will do
  if (root.kind != YamlNode::Kind::sequence) {
    YamlMap map(root, problems);
    stacks = map.require("stacks");
    map.finish();
  }
  if (stacks != nullptr && stacks->kind != YamlNode::Kind::sequence)
    problems.add(stacks->where, "'stacks' must be a list of lists of operators");
  if (stacks != nullptr) {
    for (const YamlNode& stack : stacks->items) {
      if (stack.kind != YamlNode::Kind::sequence) {
        problems.add(stack.where, "a stack must be a list of operators");
        continue;
      }
      auto& members = file.stacks.emplace_back();
      for (const YamlNode& member : stack.items) {
        if (member.kind != YamlNode::Kind::scalar) {
          problems.add(member.where, "an operator is a node's name, or its place among the nodes");
          continue;
        }
        ProblemList no_number;
        const auto place = member.quoted ? std::nullopt : as_integer(member, no_number);
        members.push_back({place ? "" : member.scalar, place, member.where});
      }
    }
  }
  problems.throw_if_any();
  return file;
}

class Resolver {
public:
  Resolver(const Graph& step, const Graph& network, std::span<const Graph* const> others)
      : network_(network) {
    for (std::size_t i = 0; i < step.operators().size(); ++i)
      ids_.emplace(step.operators()[i].name, OpId(i));
    add_names(network);
    for (const Graph* other : others)
      add_names(*other);
  }

  std::vector<std::vector<OpId>> resolve(const StacksFile& file) {
    std::vector<std::vector<OpId>> stacks;
    for (const auto& members : file.stacks) {
      std::vector<OpId> stack;
      for (const StackMember& member : members) {
        if (const auto id = find(member))
          stack.push_back(*id);
      }
      std::sort(stack.begin(), stack.end());
      if (!stack.empty())
        stacks.push_back(std::move(stack));
    }
    problems_.throw_if_any();
    return stacks;
  }

private:
  void add_names(const Graph& graph) {
    for (const Operator& op : graph.operators())
      known_.insert(op.name);
  }

  std::optional<OpId> find(const StackMember& member) {
    std::string name = member.name;
    if (member.place) {
      const auto nodes = static_cast<std::int64_t>(network_.operators().size());
      if (*member.place < 0 || *member.place >= nodes) {
        problems_.add(member.where, fmt::format("there is no node {}: the network has {}, from 0",
                                                *member.place, nodes));
        return std::nullopt;
      }
      name = network_.operators()[static_cast<std::size_t>(*member.place)].name;
    }
    const auto id = ids_.find(name);
    if (id == ids_.end() && !known_.contains(name)) {
      problems_.add(member.where, fmt::format("there is no operator '{}'", name), hint(name));
      return std::nullopt;
    }
    if (!taken_.insert(name).second) {
      problems_.add(member.where, fmt::format("operator '{}' is in a stack already", name));
      return std::nullopt;
    }
    return id == ids_.end() ? std::nullopt : std::optional(id->second);
  }

  std::string hint(const std::string& name) {
    if (names_.empty()) {
      names_.assign(known_.begin(), known_.end());
      for (const auto& [known, id] : ids_) {
        if (!known_.contains(known))
          names_.push_back(known);
      }
      std::sort(names_.begin(), names_.end());
    }
    return nearest_name_hint(name, names_);
  }

  const Graph& network_;
  std::unordered_map<std::string, OpId> ids_;
  std::unordered_set<std::string> known_; ///< somebody has an operator of that name
  std::unordered_set<std::string> taken_;
  std::vector<std::string> names_;
  ProblemList problems_;
};

} // namespace

StacksFile read_stacks(const std::string& path) {
  return read(load_yaml(path), path);
}

StacksFile parse_stacks(std::string_view text, const std::string& origin) {
  return read(parse_yaml(text, origin), origin);
}

std::vector<std::vector<OpId>> resolve_stacks(const StacksFile& file, const Graph& step,
                                              const Graph& network,
                                              std::span<const Graph* const> others) {
  return Resolver(step, network, others).resolve(file);
}

} // namespace monet
