// Reads and writes stacks files (YAML), and resolves their operator and loop names to a fusion plan
// for one graph.
#include "monet/tiling/stacks_file.hpp"

#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"
#include "base/shared/yaml_overlay.hpp"

#include "monet/base/yaml.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace monet {

namespace {

StackMember read_member(const YamlNode& node, ProblemList& problems) {
  if (node.kind != YamlNode::Kind::scalar) {
    problems.add(node.where, "an operator is a node's name, or its place among the nodes");
    return {"", std::nullopt, node.where};
  }
  ProblemList no_number;
  const auto place = node.quoted ? std::nullopt : as_integer(node, no_number);
  return {place ? "" : node.scalar, place, node.where};
}

std::vector<StackMember> read_members(const YamlNode& node, ProblemList& problems) {
  std::vector<StackMember> members;
  if (node.kind != YamlNode::Kind::sequence)
    problems.add(node.where, "a stack must be a list of operators");
  for (const YamlNode& member : node.items)
    members.push_back(read_member(member, problems));
  return members;
}

StacksFile::Slices::Cut read_cut(const YamlNode& node, ProblemList& problems) {
  StacksFile::Slices::Cut cut;
  YamlMap map(node, problems);
  if (const YamlNode* of = map.require("operator"))
    cut.of = read_member(*of, problems);
  cut.loop = map.require_string("loop");
  cut.count = map.require_integer("count", 1);
  cut.where = node.where;
  if (cut.count < 1)
    problems.add(node.where, "a loop is cut into at least one slice");
  map.finish();
  return cut;
}

/// Reads a stack with options: its operators, slices, halo and turns.
std::vector<StackMember> read_sliced(const YamlNode& node, StacksFile::Slices& slices,
                                     ProblemList& problems) {
  std::vector<StackMember> members;
  YamlMap map(node, problems);
  if (const YamlNode* operators = map.require("operators"))
    members = read_members(*operators, problems);
  if (const YamlNode* cuts = map.find("slices")) {
    slices.cuts.emplace();
    if (cuts->kind != YamlNode::Kind::sequence)
      problems.add(cuts->where, "'slices' must be a list of {operator, loop, count}");
    for (const YamlNode& cut : cuts->items)
      slices.cuts->push_back(read_cut(cut, problems));
  }
  if (const YamlNode* halo = map.find("halo")) {
    const std::string name = as_string(*halo, problems).value_or("");
    if (name != "cached" && name != "recomputed")
      problems.add(halo->where, "'halo' must be cached or recomputed");
    else if (!slices.cuts)
      problems.add(halo->where, "'halo' has no effect without 'slices'");
    slices.halo = name == "recomputed" ? Halo::recomputed : Halo::cached;
  }
  if (const YamlNode* turns = map.find("turns")) {
    slices.turns = as_integer(*turns, problems).value_or(1);
    slices.turns_where = turns->where;
    if (slices.turns < 1 || slices.turns > StackSlices::kMaxTurns)
      problems.add(turns->where, fmt::format("a stack has 1 to {} turns", StackSlices::kMaxTurns));
    else if (!slices.cuts)
      problems.add(turns->where, "'turns' has no effect without 'slices'");
  }
  map.finish();
  return members;
}

void read_idle_cores(const YamlNode& node, StacksFile& file, ProblemList& problems) {
  if (node.kind != YamlNode::Kind::sequence)
    problems.add(node.where, "'idle_cores' must be a list of cores' ids");
  for (const YamlNode& core : node.items) {
    if (const auto id = as_integer(core, problems))
      file.idle_cores.push_back({*id, core.where});
  }
}

StacksFile read(const YamlNode& root, const std::string& origin) {
  require_kind(root, {FileKind::stacks});
  ProblemList problems;
  StacksFile file{origin, {}, {}, {}};
  const YamlNode* stacks = &root; // a list without `stacks:` is allowed
  if (root.kind != YamlNode::Kind::sequence) {
    YamlMap map(root, problems);
    stacks = map.require("stacks");
    if (const YamlNode* idle = map.find("idle_cores"))
      read_idle_cores(*idle, file, problems);
    map.finish();
  }
  if (stacks != nullptr && stacks->kind != YamlNode::Kind::sequence)
    problems.add(stacks->where, "'stacks' must be a list of lists of operators");
  if (stacks != nullptr) {
    for (const YamlNode& stack : stacks->items) {
      StacksFile::Slices& slices = file.slices.emplace_back();
      file.stacks.push_back(stack.kind == YamlNode::Kind::map ? read_sliced(stack, slices, problems)
                                                              : read_members(stack, problems));
    }
  }
  problems.throw_if_any();
  return file;
}

/// Resolves the names, places and loops of a stacks file in a step; collects all problems.
class Resolver {
public:
  Resolver(const Graph& step, const Graph& network, std::span<const Graph* const> others)
      : step_(step), network_(network) {
    for (std::size_t i = 0; i < step.operators().size(); ++i)
      ids_.emplace(step.operators()[i].name, OpId(i));
    add_names(network);
    for (const Graph* other : others)
      add_names(*other);
  }

  FusionPlan resolve(const StacksFile& file) {
    FusionPlan plan;
    for (std::size_t s = 0; s < file.stacks.size(); ++s) {
      std::vector<OpId> stack;
      for (const StackMember& member : file.stacks[s]) {
        const auto name = name_of(member);
        const OpId* id = name ? find(*name, member.where) : nullptr;
        if (name && !taken_.insert(*name).second)
          problems_.add(member.where, fmt::format("operator '{}' is in a stack already", *name));
        else if (id != nullptr)
          stack.push_back(*id);
      }
      std::ranges::sort(stack);
      auto slices = slices_of(file.slices[s], stack);
      if (stack.empty())
        continue;
      plan.stacks.push_back(std::move(stack));
      plan.slices.push_back(std::move(slices));
    }
    check_turns(file);
    problems_.throw_if_any();
    return plan;
  }

private:
  void check_turns(const StacksFile& file) {
    std::int64_t turns = 1;
    for (const StacksFile::Slices& slices : file.slices) {
      if (slices.turns > 1 && turns > 1 && slices.turns != turns)
        problems_.add(
            slices.turns_where,
            fmt::format(
                "{} turns, but {} in an earlier stack: all stacks with turns need the same number",
                slices.turns, turns));
      turns = std::max(turns, slices.turns);
    }
  }

  void add_names(const Graph& graph) {
    for (const Operator& op : graph.operators())
      known_.insert(op.name);
  }

  std::optional<std::string> name_of(const StackMember& member) {
    if (!member.place)
      return member.name;
    const auto nodes = static_cast<std::int64_t>(network_.operators().size());
    if (*member.place >= 0 && *member.place < nodes)
      return network_.operators()[static_cast<std::size_t>(*member.place)].name;
    problems_.add(member.where, fmt::format("there is no node {}: the network has {}, from 0",
                                            *member.place, nodes));
    return std::nullopt;
  }

  /// Finds the operator in the step. Null if only another graph has it; adds a problem if no graph
  /// has it.
  const OpId* find(const std::string& name, const SourceLoc& where) {
    const auto id = ids_.find(name);
    if (id != ids_.end())
      return &id->second;
    if (!known_.contains(name))
      problems_.add(where, fmt::format("there is no operator '{}'", name), hint(name));
    return nullptr;
  }

  std::optional<StackSlices> slices_of(const StacksFile::Slices& given,
                                       const std::vector<OpId>& stack) {
    if (!given.cuts)
      return std::nullopt;
    StackSlices slices{{}, given.halo, given.turns};
    bool complete = true;
    for (const StacksFile::Slices::Cut& cut : *given.cuts) {
      const auto name = name_of(cut.of);
      const OpId* id = name ? find(*name, cut.of.where) : nullptr;
      complete = complete && id != nullptr;
      if (id == nullptr)
        continue;
      if (std::ranges::find(stack, *id) == stack.end()) {
        problems_.add(cut.of.where, fmt::format("operator '{}' is not in this stack", *name));
        continue;
      }
      const LoopNest& nest = step_.op(*id).nest;
      const std::size_t dim = find_dim(nest, cut.loop);
      if (dim == nest.dims.size())
        problems_.add(cut.where, fmt::format("operator '{}' has no loop '{}': it has {}", *name,
                                             cut.loop, loops_of(nest)));
      else if (!may_slice(nest, dim))
        problems_.add(cut.where,
                      fmt::format("loop '{}' of operator '{}' may not be cut", cut.loop, *name));
      else
        slices.cuts.push_back({*id, static_cast<std::uint32_t>(dim), cut.count});
    }
    return complete ? std::optional(std::move(slices)) : std::nullopt;
  }

  static std::string loops_of(const LoopNest& nest) {
    std::string list;
    for (const LoopDim& dim : nest.dims)
      list += (list.empty() ? "" : ", ") + dim.name;
    return list.empty() ? "none" : list;
  }

  std::string hint(const std::string& name) {
    if (names_.empty()) {
      names_.assign(known_.begin(), known_.end());
      for (const auto& [known, id] : ids_) {
        if (!known_.contains(known))
          names_.push_back(known);
      }
      std::ranges::sort(names_);
    }
    return nearest_name_hint(name, names_);
  }

  const Graph& step_;
  const Graph& network_;
  std::unordered_map<std::string, OpId> ids_;
  std::unordered_set<std::string> known_; ///< names of operators of all graphs
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

FusionPlan resolve_stacks(const StacksFile& file, const Graph& step, const Graph& network,
                          std::span<const Graph* const> others) {
  return Resolver(step, network, others).resolve(file);
}

std::vector<bool> idle_cores_of(const StacksFile& file, const Chip& chip) {
  std::vector<bool> idle(file.idle_cores.empty() ? 0 : chip.cores.size(), false);
  ProblemList problems;
  for (const StacksFile::IdleCore& one : file.idle_cores) {
    const auto cores = static_cast<std::int64_t>(chip.compute_cores());
    if (one.core < 0 || one.core >= cores)
      problems.add(one.where, fmt::format("there is no compute core {}: '{}' has {}, from 0",
                                          one.core, chip.name, cores));
    else
      idle[static_cast<std::size_t>(one.core)] = true;
  }
  problems.throw_if_any();
  return idle;
}

std::string stacks_yaml(const FusionPlan& plan, const Graph& step) {
  std::string idle;
  for (std::size_t core = 0; core < plan.idle.size(); ++core) {
    if (plan.idle[core])
      idle += (idle.empty() ? "" : ", ") + std::to_string(core);
  }
  std::string text = idle.empty() ? "" : fmt::format("idle_cores: [{}]\n", idle);
  text += plan.stacks.empty() ? "stacks: []\n" : "stacks:\n";
  for (std::size_t s = 0; s < plan.stacks.size(); ++s) {
    std::string members;
    for (const OpId member : plan.stacks[s])
      members += (members.empty() ? "" : ", ") + yaml_quoted(step.op(member).name);
    const bool sliced = s < plan.slices.size() && plan.slices[s];
    text += fmt::format("  - {}[{}]\n", sliced ? "operators: " : "", members);
    if (!sliced)
      continue;
    std::string cuts;
    for (const StackSlices::Cut& cut : plan.slices[s]->cuts)
      cuts += fmt::format("{}{{operator: {}, loop: {}, count: {}}}", cuts.empty() ? "" : ", ",
                          yaml_quoted(step.op(cut.op).name),
                          yaml_quoted(step.op(cut.op).nest.dims[cut.dim].name), cut.count);
    text += fmt::format("    slices: [{}]\n", cuts);
    if (plan.slices[s]->halo)
      text += fmt::format("    halo: {}\n",
                          *plan.slices[s]->halo == Halo::cached ? "cached" : "recomputed");
    if (plan.slices[s]->turns > 1)
      text += fmt::format("    turns: {}\n", plan.slices[s]->turns);
  }
  return text;
}

} // namespace monet
