// Lists the groups of operators that may run fused and measures the slices of each kind of group
// once. price.cpp prices them and covers.cpp selects among them.
#include "tiling/fusion_estimate/groups.hpp"

#include "base/shared/bytes.hpp"
#include "tiling/partition/split.hpp"
#include "tiling/shared/grid.hpp"

#include "monet/base/stop.hpp"
#include "monet/base/units.hpp"
#include "monet/tiling/tiling.hpp"

#include <algorithm>
#include <unordered_map>

namespace monet {

namespace {

/// Maximum loops of the first and of the last member from which slices start.
constexpr std::size_t kMaxLoops = 3;
/// Maximum slices along one loop of a member; tried counts double.
constexpr std::int64_t kMaxSlices = 64;
/// Maximum slices along the inner of two loops.
constexpr std::int64_t kMaxInnerSlices = 16;

/// Key with the loops, accesses and sizes of an operator, without names of operators and tensors.
/// Equal for operators with equal tiles.
std::string form_of(const Graph& graph, const Operator& op) {
  ByteWriter key;
  key.number(op.nest.compute, op.phase == Phase::update);
  key.list(op.nest.dims, [&](const LoopDim& dim) {
    key.text(dim.name);
    key.number(dim.coupled, dim.size);
  });
  key.number(op.nest.work.total(), products(op.nest));
  key.list(op.nest.operands, [&](const Access& access) {
    const Tensor& tensor = graph.tensor(access.tensor);
    key.number(access.mode, access.opaque);
    key.text(name_of(tensor.type));
    key.list(tensor.shape, [&](std::int64_t extent) { key.number(extent); });
    key.list(access.axes, [&](const AxisExpr& axis) {
      key.number(axis.data_dependent, axis.offset);
      key.list(axis.terms, [&](const AffineTerm& term) { key.number(term.dim, term.coefficient); });
    });
  });
  return key.take();
}

} // namespace

/// Finds all groups and measures each kind of group once.
class NeighbourGroups::Builder {
public:
  Builder(const Graph& graph, Halo halo, NeighbourGroups& result)
      : graph_(graph), halo_(halo), result_(result), scratch_(graph),
        place_(graph.operators().size(), 0), local_(graph.tensors().size(), 0),
        seen_(graph.tensors().size(), 0) {
    std::unordered_map<std::string, std::uint32_t> forms;
    for (const Operator& op : graph.operators()) {
      const auto next = static_cast<std::uint32_t>(forms.size());
      forms_.push_back(forms.emplace(form_of(graph, op), next).first->second);
    }
    const auto makers = gradient_makers(graph);
    result.updates_of_.resize(makers.size());
    for (std::size_t i = 0; i < makers.size(); ++i) {
      if (makers[i])
        result.updates_of_[makers[i]->index()].emplace_back(i);
      else
        result.sequence_.emplace_back(i);
    }
    for (std::size_t i = 0; i < result.sequence_.size(); ++i)
      place_[result.sequence_[i].index()] = static_cast<std::uint32_t>(i);
    for (std::size_t i = 0; i < makers.size(); ++i) {
      if (makers[i])
        place_[i] = place_[makers[i]->index()];
    }
  }

  void run() {
    const auto count = static_cast<std::uint32_t>(result_.sequence_.size());
    for (std::uint32_t end = 1; end <= count; ++end) {
      bool updates = false;
      for (std::uint32_t begin = end; begin-- > 0 && end - begin <= kLongest;) {
        const OpId first = result_.sequence_[begin];
        updates = updates || !result_.updates_of_[first.index()].empty();
        add(begin, end, false);
        if (updates)
          add(begin, end, true);
        // Groups that begin in the update phase gain nothing.
        if (graph_.op(first).phase == Phase::update)
          break;
      }
    }
  }

private:
  void add(std::uint32_t begin, std::uint32_t end, bool updates) {
    NeighbourGroup group{begin, end, 0, updates, {}};
    for (std::uint32_t i = begin; i < end; ++i) {
      group.members.push_back(result_.sequence_[i]);
      if (updates) {
        const auto& own = result_.updates_of_[result_.sequence_[i].index()];
        group.members.insert(group.members.end(), own.begin(), own.end());
      }
    }
    std::ranges::sort(group.members);
    if ((group.members.size() > 1 && !linked(group.members)) || (updates && !in_order(group)))
      return;
    const auto next = static_cast<std::uint32_t>(result_.ways_.size());
    const auto [known, added] = kinds_.emplace(key_of(group.members), next);
    group.kind = known->second;
    if (added)
      result_.ways_.push_back(measure(group.members));
    result_.groups_.push_back(std::move(group));
  }

  /// True if tensors that members pass on or both read connect all members.
  bool linked(const std::vector<OpId>& members) {
    ++sight_;
    leader_.resize(members.size());
    const auto find = [&](std::uint32_t m) {
      while (leader_[m] != m)
        m = leader_[m] = leader_[leader_[m]];
      return m;
    };
    std::size_t parts = members.size();
    for (std::uint32_t m = 0; m < members.size(); ++m) {
      leader_[m] = m;
      for (const Access& access : graph_.op(members[m]).nest.operands) {
        const std::size_t tensor = access.tensor.index();
        if (seen_[tensor] == sight_) {
          const std::uint32_t a = find(static_cast<std::uint32_t>(local_[tensor]));
          const std::uint32_t b = find(m);
          parts -= a == b ? 0 : 1;
          leader_[b] = a;
        }
        seen_[tensor] = sight_;
        local_[tensor] = m;
      }
    }
    return parts == 1;
  }

  /// True if updates can overwrite their storage without a cyclic wait. False if a member waits for
  /// a reader placed after the group while an operator outside the group reads the group's results.
  bool in_order(const NeighbourGroup& group) const {
    const auto outside = [&](OpId op) { return !std::ranges::binary_search(group.members, op); };
    bool waits = false;  // a member waits for a reader placed after the group
    bool needed = false; // an outside operator other than an update reads a result
    for (const OpId member : group.members) {
      for (const TensorId id : present(graph_.op(member).outputs)) {
        const Tensor& tensor = graph_.tensor(id);
        for (const OpId reader : tensor.consumers)
          needed = needed || (outside(reader) && graph_.op(reader).phase != Phase::update);
        if (!tensor.alias_of)
          continue;
        for (const OpId reader : graph_.tensor(*tensor.alias_of).consumers)
          waits =
              waits || (outside(reader) && reader < member && place_[reader.index()] >= group.end);
      }
    }
    return !waits || !needed;
  }

  std::string key_of(const std::vector<OpId>& members) {
    ByteWriter key;
    ++sight_;
    std::int64_t tensors = 0;
    for (const OpId member : members) {
      key.number(forms_[member.index()]);
      for (const Access& access : graph_.op(member).nest.operands) {
        const std::size_t id = access.tensor.index();
        if (seen_[id] != sight_) {
          seen_[id] = sight_;
          local_[id] = tensors++;
        }
        key.number(local_[id]);
      }
      key.number(static_cast<bool>(scratch_.left_behind[member.index()]));
    }
    return key.take();
  }

  std::vector<GroupSlices> measure(const std::vector<OpId>& members) {
    const StackSlicer slicer(graph_, members, scratch_);
    std::vector<GroupSlices> ways{way(slicer, members, {})};
    std::size_t last = members.size() - 1; // last member that is not an update
    while (last > 0 && graph_.op(members[last]).phase == Phase::update)
      --last;
    std::vector<Seed> seeds;
    add_seeds(slicer, members, members.size() - 1, seeds);
    if (last + 1 < members.size())
      add_seeds(slicer, members, last, seeds);
    if (last > 0)
      add_seeds(slicer, members, 0, seeds);
    else
      add_seeds(slicer, members, 0, seeds, LoopUse::summed);
    for (const Seed& seed : seeds) {
      const std::int64_t size = size_of(members, seed);
      for (std::int64_t count = 2; count <= kMaxSlices; count *= 2) {
        ways.push_back(way(slicer, members, {{seed, std::min(count, size)}}));
        if (count >= size)
          break;
      }
    }
    add_second_loops(slicer, members, seeds, ways);
    return ways;
  }

  /// A loop of a member, and the loops of other members that follow from it.
  struct Seed {
    std::size_t member = 0;
    std::uint32_t dim = 0;
    StackSlicer::Loops loops;
  };
  using Cuts = std::vector<std::pair<Seed, std::int64_t>>;

  std::int64_t size_of(const std::vector<OpId>& members, const Seed& seed) const {
    return graph_.op(members[seed.member]).nest.dims[seed.dim].size;
  }

  void add_seeds(const StackSlicer& slicer, const std::vector<OpId>& members, std::size_t member,
                 std::vector<Seed>& seeds, LoopUse use = LoopUse::parallel) const {
    const LoopNest& nest = graph_.op(members[member]).nest;
    std::size_t loops = 0;
    for (std::uint32_t d = 0; d < nest.dims.size() && loops < kMaxLoops; ++d) {
      if (nest.dims[d].size < 2 || loop_use(nest, d) != use)
        continue;
      ++loops;
      Seed seed{member, d, StackSlicer::Loops(members.size())};
      seed.loops[member] = d;
      slicer.spread(seed.loops);
      if (std::ranges::find(seeds, seed.loops, &Seed::loops) == seeds.end())
        seeds.push_back(std::move(seed));
    }
  }

  /// Adds ways with two loops: a short first loop cut into single iterations, and another loop
  /// inside.
  void add_second_loops(const StackSlicer& slicer, const std::vector<OpId>& members,
                        const std::vector<Seed>& seeds, std::vector<GroupSlices>& ways) const {
    for (const Seed& outer : seeds) {
      const std::int64_t batch = size_of(members, outer);
      if (outer.dim != 0 || batch > kMaxSlices)
        continue;
      for (const Seed& seed : seeds) {
        if (seed.member != outer.member || seed.dim == outer.dim)
          continue;
        const std::int64_t size = size_of(members, seed);
        for (std::int64_t count = 2; count <= kMaxInnerSlices; count *= 2) {
          GroupSlices slices =
              way(slicer, members, {{outer, batch}, {seed, std::min(count, size)}});
          if (!sweeps_results(members, slices))
            ways.push_back(std::move(slices));
          if (count >= size)
            break;
        }
      }
    }
  }

  /// True if slices of an outer loop sweep repeatedly over operators' results, in other parts each
  /// time.
  bool sweeps_results(const std::vector<OpId>& members, const GroupSlices& way) const {
    return std::ranges::any_of(way.space.kept, [&](const GroupSpace::Kept& kept) {
      const Access& access = graph_.op(members[kept.member]).nest.operands[kept.operand];
      return kept.times < way.members[kept.member].slices && graph_.tensor(access.tensor).producer;
    });
  }

  GroupSlices way(const StackSlicer& slicer, const std::vector<OpId>& members,
                  const Cuts& cuts) const {
    check_stop();
    GroupSlices result;
    std::vector<Slices> slices(members.size());
    const std::vector<bool> fixed(members.size(), false);
    for (const auto& [seed, count] : cuts) {
      slicer.make_slices(seed.loops, count, halo_, fixed, slices);
      result.cuts.push_back({OpId(seed.member), seed.dim, count});
    }
    std::vector<bool> left_out;
    for (std::size_t m = 0; m < members.size(); ++m) {
      const Operator& op = graph_.op(members[m]);
      left_out.push_back(op.phase == Phase::update);
      result.members.push_back(member(op.nest, slices[m]));
      result.most = std::max(result.most, result.members.back().slices);
    }
    result.space = group_space(graph_, members, slicer, slices, left_out);
    return result;
  }

  GroupSlices::Member member(const LoopNest& nest, const Slices& slices) const {
    GroupSlices::Member result;
    std::vector<Interval> ranges = full_tile(nest);
    for (const SliceCut& cut : slices) {
      ranges[cut.dim] = cut.parts[cut.parts.size() / 2];
      result.parts.emplace_back(cut.dim, ranges[cut.dim].size());
      std::int64_t all = 0;
      for (const Interval part : cut.parts)
        all += part.size();
      result.slices *= static_cast<double>(cut.parts.size());
      result.work *= static_cast<double>(all) / static_cast<double>(nest.dims[cut.dim].size);
    }
    std::vector<std::int64_t> bits;
    GroupSlices::Split whole;
    for (const Access& access : nest.operands) {
      const Tensor& tensor = graph_.tensor(access.tensor);
      bits.push_back(storage_of(tensor.type, volume(region(access, ranges, tensor.shape))).value);
      whole.fixed += bits.back();
    }
    result.splits.push_back(whole);
    result.whole = result.least = whole.fixed;
    for (std::uint32_t d = 0; d < ranges.size(); ++d) {
      if (ranges[d].size() < 2 || !may_split(nest, d))
        continue;
      GroupSlices::Split split{ranges[d].size(), 0, 0};
      for (std::size_t i = 0; i < bits.size(); ++i)
        (moved_by(nest.operands[i], d) ? split.moved : split.fixed) += bits[i];
      result.least = std::min(result.least, split.fixed + ceil_div(split.moved, split.extent));
      result.splits.push_back(split);
    }
    return result;
  }

  const Graph& graph_;
  Halo halo_;
  NeighbourGroups& result_;
  mutable StackSlicer::Scratch scratch_;
  std::vector<std::uint32_t> place_;  ///< per operator: place of it or of its gradient's maker
  std::vector<std::int64_t> local_;   ///< per tensor: its number in the current group
  std::vector<std::uint32_t> leader_; ///< per member of the current group
  std::vector<std::uint64_t> seen_;   ///< per tensor: sight_ when last met
  std::uint64_t sight_ = 0;
  std::vector<std::uint32_t> forms_; ///< per operator
  std::unordered_map<std::string, std::uint32_t> kinds_;
};

NeighbourGroups::NeighbourGroups(const Graph& graph, Halo halo) {
  Builder(graph, halo, *this).run();
}

std::vector<std::optional<OpId>> gradient_makers(const Graph& graph) {
  std::vector<std::optional<OpId>> makers(graph.operators().size());
  for (std::size_t i = 0; i < makers.size(); ++i) {
    const Operator& op = graph.operators()[i];
    if (op.phase != Phase::update)
      continue;
    std::optional<OpId> maker;
    for (const auto& input : op.inputs) {
      if (input && graph.tensor(*input).producer)
        maker = std::max(maker, graph.tensor(*input).producer);
    }
    if (maker && graph.op(*maker).phase != Phase::update)
      makers[i] = maker;
  }
  return makers;
}

} // namespace monet
