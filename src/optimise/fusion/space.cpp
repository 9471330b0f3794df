// Rules of the fusion space: dependencies between groups, slice choices, group signatures and steps
// of single groups; all fusion searches use them.
#include "optimise/fusion/space.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace monet {

namespace {

void append(std::string& key, std::int64_t number) {
  key += std::to_string(number);
  key += ' ';
}

void unique_sorted(std::vector<OpId>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// First `most` loops of a nest from which slices may start: those of results that can be cut.
std::vector<std::uint32_t> sliceable(const LoopNest& nest, std::size_t most) {
  std::vector<std::uint32_t> dims;
  for (std::size_t d = 0; d < nest.dims.size() && dims.size() < most; ++d) {
    const bool in_output =
        std::ranges::any_of(nest.operands,
                            [](const Access& a) { return a.mode != AccessMode::read; }) &&
        !is_reduction(nest, d);
    if (nest.dims[d].size > 1 && in_output && may_slice(nest, d))
      dims.push_back(static_cast<std::uint32_t>(d));
  }
  return dims;
}

void append_nest(std::string& key, const LoopNest& nest,
                 const std::map<TensorId, std::size_t>& number) {
  append(key, static_cast<int>(nest.compute));
  for (const LoopDim& dim : nest.dims) {
    key += dim.name + (dim.coupled ? "!" : "=");
    append(key, dim.size);
  }
  for (const int work : {nest.work.add, nest.work.multiply, nest.work.divide, nest.work.compare,
                         nest.work.square_root, nest.work.transcendental})
    append(key, work);
  append(key, products(nest));
  for (const Access& access : nest.operands) {
    key += access.role + (access.opaque ? "?" : ":");
    append(key, static_cast<std::int64_t>(number.at(access.tensor)));
    append(key, static_cast<int>(access.mode));
    append(key, access.passes);
    for (const AxisExpr& axis : access.axes) {
      key += axis.data_dependent ? '*' : '|';
      append(key, axis.offset);
      for (const AffineTerm& term : axis.terms) {
        append(key, term.dim);
        append(key, term.coefficient);
      }
    }
  }
}

/// Whether a tensor is read outside the group or outlives the step.
class IsGroupOutput {
public:
  IsGroupOutput(const Graph& graph, std::span<const OpId> members)
      : graph_(graph), members_(members), outputs_(graph.outputs.begin(), graph.outputs.end()) {}

  bool operator()(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    return outputs_.contains(id) || tensor.alias_of.has_value() ||
           std::ranges::any_of(tensor.consumers, [&](OpId reader) {
             return !std::ranges::binary_search(members_, reader);
           });
  }

private:
  const Graph& graph_;
  std::span<const OpId> members_;
  std::set<TensorId> outputs_;
};

} // namespace

std::vector<StackSlices> slice_choices(const Graph& graph, std::span<const OpId> members,
                                       const FusionOptions& options) {
  std::vector<StackSlices> choices{StackSlices{}};
  if (members.size() < 2)
    return choices;
  for (const OpId member : {members.back(), members.front()}) {
    const LoopNest& nest = graph.op(member).nest;
    for (const std::uint32_t dim : sliceable(nest, options.loops)) {
      for (std::int64_t count = 2; count <= options.max_slices; count *= 2) {
        choices.push_back({{{member, dim, std::min(count, nest.dims[dim].size)}}, std::nullopt});
        if (options.recomputed_halos) {
          choices.push_back(choices.back());
          choices.back().halo = Halo::recomputed;
        }
        if (count >= nest.dims[dim].size)
          break;
      }
    }
  }
  return choices;
}

bool connected(const Graph& graph, std::span<const OpId> members) {
  std::map<TensorId, std::vector<std::size_t>> users;
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (const Access& access : graph.op(members[m]).nest.operands)
      users[access.tensor].push_back(m);
  }
  std::vector<std::size_t> leader(members.size());
  std::iota(leader.begin(), leader.end(), std::size_t{0});
  const auto find = [&](std::size_t m) {
    while (leader[m] != m)
      m = leader[m] = leader[leader[m]];
    return m;
  };
  std::size_t parts = members.size();
  for (const auto& [tensor, list] : users) {
    for (const std::size_t m : list) {
      const std::size_t a = find(list.front());
      const std::size_t b = find(m);
      if (a == b)
        continue;
      leader[std::max(a, b)] = std::min(a, b);
      --parts;
    }
  }
  return parts <= 1;
}

FusionOrder::FusionOrder(const Graph& graph)
    : before_(graph.operators().size()), after_(graph.operators().size()) {
  const auto link = [&](OpId from, OpId to) {
    if (from == to)
      return;
    before_[to.index()].push_back(from);
    after_[from.index()].push_back(to);
  };
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.producer) {
      for (const OpId reader : tensor.consumers)
        link(*tensor.producer, reader);
    }
    if (tensor.producer && tensor.alias_of) {
      for (const OpId reader : graph.tensor(*tensor.alias_of).consumers) {
        if (reader < *tensor.producer)
          link(reader, *tensor.producer);
      }
    }
  }
  for (auto& list : before_)
    unique_sorted(list);
  for (auto& list : after_)
    unique_sorted(list);
}

bool FusionOrder::convex(std::span<const OpId> members) const {
  // Follows every path from the group's outputs up to the last member; no path may return to a
  // member.
  const OpId last = members.back();
  std::vector<bool> seen(last.index() + 1, false);
  std::vector<OpId> open;
  const auto inside = [&](OpId op) { return std::ranges::binary_search(members, op); };
  const auto visit = [&](OpId from, bool leaving) {
    for (const OpId next : after_[from.index()]) {
      if (next > last || (leaving && inside(next)))
        continue;
      if (inside(next))
        return false;
      if (!seen[next.index()]) {
        seen[next.index()] = true;
        open.push_back(next);
      }
    }
    return true;
  };
  for (const OpId member : members)
    visit(member, true);
  while (!open.empty()) {
    const OpId op = open.back();
    open.pop_back();
    if (!visit(op, false))
      return false;
  }
  return true;
}

std::vector<std::size_t> FusionOrder::circle(const std::vector<std::vector<OpId>>& groups) const {
  std::vector<std::size_t> group_of(size());
  for (std::size_t i = 0; i < group_of.size(); ++i)
    group_of[i] = groups.size() + i;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const OpId member : groups[g])
      group_of[member.index()] = g;
  }
  // Removes groups without predecessors repeatedly; each remaining group is in a cycle or follows
  // one.
  std::vector<std::vector<std::size_t>> next(groups.size() + size());
  std::vector<std::size_t> waits(next.size(), 0);
  const auto for_links = [&](const auto& see) {
    for (std::size_t i = 0; i < size(); ++i) {
      for (const OpId to : after_[i]) {
        if (group_of[i] != group_of[to.index()])
          see(group_of[i], group_of[to.index()]);
      }
    }
  };
  for_links([&](std::size_t from, std::size_t to) {
    next[from].push_back(to);
    ++waits[to];
  });
  std::vector<std::size_t> ready;
  for (std::size_t g = 0; g < waits.size(); ++g) {
    if (waits[g] == 0)
      ready.push_back(g);
  }
  while (!ready.empty()) {
    const std::size_t g = ready.back();
    ready.pop_back();
    for (const std::size_t to : next[g]) {
      if (--waits[to] == 0)
        ready.push_back(to);
    }
  }
  const auto stuck = std::ranges::find_if(waits, [](std::size_t w) { return w > 0; });
  if (stuck == waits.end())
    return {};
  std::vector<std::size_t> before(waits.size(), waits.size()); // a remaining predecessor
  for_links([&](std::size_t from, std::size_t to) {
    if (waits[from] > 0 && before[to] == waits.size())
      before[to] = from;
  });
  std::vector<std::size_t> path;
  auto at = static_cast<std::size_t>(stuck - waits.begin());
  for (; std::ranges::find(path, at) == path.end(); at = before[at])
    path.push_back(at);
  path.erase(path.begin(), std::ranges::find(path, at));
  std::erase_if(path, [&](std::size_t g) { return g >= groups.size(); });
  return path;
}

std::string group_signature(const Graph& graph, std::span<const OpId> members, bool names) {
  const IsGroupOutput leaving(graph, members);
  std::map<TensorId, std::size_t> number;
  std::vector<TensorId> tensors;
  std::string key;
  for (const OpId id : members) {
    for (const Access& access : graph.op(id).nest.operands) {
      if (number.emplace(access.tensor, tensors.size()).second)
        tensors.push_back(access.tensor);
    }
  }
  for (const OpId id : members) {
    const Operator& op = graph.op(id);
    key += op.op_type.str() + ' ';
    if (names)
      key += op.name + ' ';
    append(key, static_cast<int>(op.phase));
    append_nest(key, op.nest, number);
  }
  for (const TensorId id : tensors) {
    const Tensor& tensor = graph.tensor(id);
    key += name_of(tensor.type) + ' ';
    for (const std::int64_t extent : tensor.shape)
      append(key, extent);
    const bool made = tensor.producer && std::ranges::binary_search(members, *tensor.producer);
    key += !made ? 'i' : leaving(id) ? 'o' : 'm';
    const auto root = tensor.alias_of ? number.find(*tensor.alias_of) : number.end();
    append(key, root == number.end() ? -1 : static_cast<std::int64_t>(root->second));
  }
  return key;
}

TrainingGraph group_step(const TrainingGraph& step, std::span<const OpId> members) {
  const IsGroupOutput leaving(step.graph, members);
  TrainingGraph group{.training = step.training, .accumulate = step.accumulate};
  group.graph.name = step.graph.name;
  std::map<TensorId, TensorId> ids;
  const auto copy = [&](TensorId id) {
    if (const auto known = ids.find(id); known != ids.end())
      return known->second;
    Tensor tensor = step.graph.tensor(id);
    const bool made = tensor.producer && std::ranges::binary_search(members, *tensor.producer);
    tensor.producer.reset();
    tensor.consumers.clear();
    if (tensor.alias_of) {
      const auto root = ids.find(*tensor.alias_of);
      tensor.alias_of =
          made && root != ids.end() ? std::optional(root->second) : std::optional<TensorId>();
    }
    const TensorId own = group.graph.add_tensor(std::move(tensor));
    group.owner.push_back(step.owner.at(id.index()));
    ids.emplace(id, own);
    if (!made)
      group.graph.inputs.push_back(own);
    else if (leaving(id))
      group.graph.outputs.push_back(own);
    return own;
  };
  for (const OpId id : members) {
    Operator op = step.graph.op(id);
    op.forward_op.reset();
    for (auto& input : op.inputs) {
      if (input)
        input = copy(*input);
    }
    for (auto& output : op.outputs) {
      if (output)
        output = copy(*output);
    }
    for (Access& access : op.nest.operands)
      access.tensor = copy(access.tensor);
    group.graph.add_operator(std::move(op));
  }
  return group;
}

StackSlices to_group(const StackSlices& slices, std::span<const OpId> members) {
  StackSlices result = slices;
  for (StackSlices::Cut& cut : result.cuts) {
    const auto place = std::ranges::lower_bound(members, cut.op);
    internal_check(place != members.end() && *place == cut.op, "a group is cut by an outsider");
    cut.op = OpId(static_cast<std::size_t>(place - members.begin()));
  }
  return result;
}

StackSlices from_group(const StackSlices& slices, std::span<const OpId> members) {
  StackSlices result = slices;
  for (StackSlices::Cut& cut : result.cuts)
    cut.op = members[cut.op.index()];
  return result;
}

} // namespace monet
