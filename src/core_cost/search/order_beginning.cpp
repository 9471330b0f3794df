// Fingerprints and bounds of beginnings of temporal orders; order_search.cpp prunes with them.
#include "core_cost/search/order_beginning.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace monet::core_cost_detail {

namespace {

/// Largest common denominator of fractional unrollings for which numbers count as whole.
constexpr double kMaxParts = 1024;
constexpr double kLargestWhole = 9007199254740992.0; // 2^53

/// Two lanes of multiply and fold; equal input, equal output, and nothing else in practice.
class Mixer {
public:
  void add(std::uint64_t word) {
    a_ = fold(a_ ^ word, 0x9E3779B97F4A7C15ULL);
    b_ = fold(b_ + word, 0xD6E8FEB86659FD93ULL);
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  Fingerprint result() const { return {a_, b_}; }

private:
  static std::uint64_t fold(std::uint64_t x, std::uint64_t factor) {
    x ^= x >> 32;
    x *= factor;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ULL;
    return x ^ (x >> 32);
  }

  std::uint64_t a_ = 0x243F6A8885A308D3ULL;
  std::uint64_t b_ = 0x13198A2E03707344ULL;
};

/// Smallest of 1, 2, 4, ... such that scale * size is an integer; 0 if none is within kMaxParts.
double parts_of(double size) {
  for (double scale = 1; scale <= kMaxParts; scale *= 2) {
    if (size * scale == std::floor(size * scale))
      return scale;
  }
  return 0;
}

/// True if loops on these axes never touch more elements than they have iterations.
bool counts_at_most_iterations(const NestModel& model) {
  if (model.choices.gaps_not_fetched)
    return true;
  for (const OperandModel& o : model.operands) {
    for (std::size_t i = 0; i < o.axes; ++i) {
      for (std::size_t t = 1; t < o.axis[i].terms; ++t) {
        if (o.axis[i].terms > 2 || o.axis[i].steps[t].stride > 1)
          return false;
      }
    }
  }
  return true;
}

bool shares_an_axis(const NestModel& model, std::uint32_t dim) {
  return std::any_of(model.operands.begin(), model.operands.end(),
                     [&](const OperandModel& o) { return o.relevance[dim] == Relevance::partial; });
}

bool numbers_are_whole(const NestModel& model, const SpatialModel& spatial) {
  double scale = 1;
  for (const auto& on_dim : spatial.exact.loops) {
    for (const Loop& loop : on_dim) {
      scale *= parts_of(loop.size);
      if (loop.size != std::floor(loop.size) && shares_an_axis(model, loop.dim))
        return false; // counts of such axes are truncated, and then may grow faster than loops
    }
  }
  std::int64_t bits = 1;
  for (const OperandModel& o : model.operands)
    bits = std::max({bits, o.bits, o.partial_bits});
  const double largest = static_cast<double>(model.iterations) * static_cast<double>(bits) * scale *
                         static_cast<double>(kMaxOperands);
  return scale > 0 && scale <= kMaxParts && largest <= kLargestWhole &&
         counts_at_most_iterations(model);
}

} // namespace

double orders_of(std::span<const std::uint8_t> counts) {
  double result = 1;
  double n = 0;
  for (const std::uint8_t count : counts) {
    for (int k = 1; k <= count; ++k)
      result = std::nearbyint(result * ++n / k); // binomials: whole at every step
  }
  return result;
}

double LoopKinds::orders() const {
  return orders_of(count);
}

LoopKinds make_kinds(const NestModel& model, std::vector<Loop> factors) {
  const auto by_name = [&](const Loop& loop) {
    return std::tie(model.dims[loop.dim].name, loop.size);
  };
  std::stable_sort(factors.begin(), factors.end(),
                   [&](const Loop& a, const Loop& b) { return by_name(a) < by_name(b); });
  LoopKinds kinds;
  kinds.loops = factors.size();
  for (const Loop& loop : factors) {
    if (!kinds.loop.empty() && by_name(kinds.loop.back()) == by_name(loop)) {
      ++kinds.count.back();
    } else {
      kinds.loop.push_back(loop);
      kinds.count.push_back(1);
    }
  }
  return kinds;
}

BeginningJudge::BeginningJudge(const NestModel& model, const Hierarchy& hierarchy,
                               const SpatialModel& spatial, const LoopKinds& kinds)
    : model_(model), hierarchy_(hierarchy), spatial_(spatial), kinds_(kinds),
      traffic_(model, hierarchy, spatial), whole_numbers_(numbers_are_whole(model, spatial)),
      footprint_{Footprint(operand_or_first(model, 0)), Footprint(operand_or_first(model, 1)),
                 Footprint(operand_or_first(model, 2)), Footprint(operand_or_first(model, 3))} {
  find_memories_that_take_the_largest();
}

/// One operand on its own takes the largest slice that fits; several do if there is room for all
/// they have.
void BeginningJudge::find_memories_that_take_the_largest() {
  takes_largest_.assign(hierarchy_.nodes.size(), false);
  if (!whole_numbers_ || model_.even_allocation || model_.choices.reserve_double_buffers)
    return;
  for (std::size_t n = 0; n < hierarchy_.nodes.size(); ++n) {
    double bits = 0;
    for (const NodeUse& use : hierarchy_.nodes[n].uses) {
      const OperandModel& o = model_.operands[use.operand];
      Footprint footprint(o);
      for (std::size_t l = 0; l <= use.level; ++l) {
        for (const Loop& loop : spatial_.exact.operands[use.operand].lists[l])
          footprint.multiply(loop);
      }
      for (std::size_t d = 0; d < spatial_.temporal.size(); ++d) {
        footprint.multiply(
            {static_cast<std::uint32_t>(d), static_cast<double>(spatial_.temporal[d])});
      }
      bits += footprint.elements() * static_cast<double>(std::max(o.bits, o.partial_bits));
    }
    takes_largest_[n] =
        hierarchy_.nodes[n].uses.size() == 1 || bits <= hierarchy_.nodes[n].size_bits;
  }
}

void BeginningJudge::lay_out(std::span<const std::uint8_t> beginning) {
  std::copy(kinds_.count.begin(), kinds_.count.end(), left_.begin());
  size_ = beginning.size();
  prefix_[0] = 1;
  for (std::size_t i = 0; i < size_; ++i) {
    loops_[i] = kinds_.loop[beginning[i]];
    prefix_[i + 1] = prefix_[i] * loops_[i].size;
    --left_[beginning[i]];
  }
  rest_ = {};
  for (std::size_t k = 0; k < kinds_.loop.size(); ++k) {
    for (int n = 0; n < left_[k]; ++n)
      rest_.iterations *= kinds_.loop[k].size;
    if (left_[k] == 0)
      continue;
    rest_.any = true;
    rest_.reduces = rest_.reduces || reduces(model_.operands[model_.output], kinds_.loop[k]);
  }
}

/// Walks the beginning for one operand and notes its cuts.
void BeginningJudge::trace(std::size_t operand) {
  const OperandModel& o = model_.operands[operand];
  const OperandUnrolling& unrolled = spatial_.exact.operands[operand];
  const auto untouched = [&](std::size_t i) {
    return o.relevance[loops_[i].dim] == Relevance::irrelevant;
  };
  Trace& t = trace_[operand];
  t.decided = allocation_.levels[operand];
  t.leading = 0;
  while (t.leading < size_ && untouched(t.leading))
    ++t.leading;
  Footprint& footprint = footprint_[operand];
  footprint = Footprint(o);
  for (const Loop& loop : unrolled.lists[0])
    footprint.multiply(loop);
  Cut at;
  const auto pass = [&](std::size_t i) {
    footprint.multiply(loops_[i]);
    const bool relevant = o.relevance[loops_[i].dim] == Relevance::relevant;
    at.relevant_run = relevant ? at.relevant_run * loops_[i].size : 1;
    at.irrelevant_run = untouched(i) ? at.irrelevant_run * loops_[i].size : 1;
    at.position = i + 1;
  };
  for (std::size_t l = 0; l < t.decided; ++l) {
    std::size_t cut = allocation_.at.cut[operand][l];
    while (l + 1 < hierarchy_.levels[operand].size() && cut < size_ && untouched(cut))
      ++cut;
    while (at.position < cut)
      pass(at.position);
    at.growing = at.position == size_ && rest_.any;
    at.elements = std::nearbyint(footprint.elements());
    if (o.output && o.axes > 0) {
      Mixer mixer;
      footprint.each_number([&](double number) { mixer.add(number); });
      at.shared_axes = mixer.result().a;
    }
    t.cuts[l] = at;
    at.relevant_run = at.irrelevant_run = 1;
    for (const Loop& loop : unrolled.lists[l + 1])
      footprint.multiply(loop);
  }
  while (at.position < size_)
    pass(at.position);
  t.end = at;
}

double BeginningJudge::untouched_to_come(const OperandModel& operand) const {
  double product = 1;
  for (std::size_t k = 0; k < kinds_.loop.size(); ++k) {
    for (int n = 0; n < left_[k]; ++n) {
      if (operand.relevance[kinds_.loop[k].dim] == Relevance::irrelevant)
        product *= kinds_.loop[k].size;
    }
  }
  return product;
}

Boundary BeginningJudge::boundary_at(std::size_t operand, const Cut& cut, std::size_t index) const {
  const OperandModel& o = model_.operands[operand];
  Boundary b = traffic_.least()[operand][index];
  const double to_come = untouched_to_come(o);
  b.elements = cut.elements;
  b.latency_elements = cut.elements;
  b.period = prefix_[cut.position] * (cut.growing ? to_come : 1);
  if (!spatial_.same) {
    Footprint footprint(o);
    for (std::size_t l = 0; l < index; ++l) {
      for (const Loop& loop : spatial_.truncated.operands[operand].lists[l])
        footprint.multiply(loop);
    }
    for (std::size_t i = 0; i < cut.position; ++i)
      footprint.multiply(loops_[i]);
    b.latency_elements = std::floor(footprint.elements());
  }
  if (!o.output || !traffic_.sums_are_certain(operand))
    return b;
  b.sums = cut.growing ? 1 : to_come;
  for (std::size_t i = cut.position; i < size_; ++i) {
    if (o.relevance[loops_[i].dim] == Relevance::irrelevant)
      b.sums *= loops_[i].size;
  }
  b.rounds = b.sums;
  for (std::size_t l = index + 1; l <= hierarchy_.levels[operand].size(); ++l) {
    for (const Loop& loop : spatial_.exact.operands[operand].lists[l]) {
      if (o.relevance[loop.dim] == Relevance::irrelevant)
        b.sums *= std::floor(loop.size);
    }
  }
  return b;
}

void BeginningJudge::set_boundaries(std::size_t operand) {
  const Trace& t = trace_[operand];
  const OperandModel& o = model_.operands[operand];
  auto& all = boundaries_[operand];
  all = traffic_.least()[operand];
  if (!o.output && t.leading < size_)
    all[0].period = prefix_[t.leading];
  for (std::size_t l = 0; l < t.decided && l + 1 < hierarchy_.levels[operand].size(); ++l)
    all[l + 1] = boundary_at(operand, t.cuts[l], l + 1);
}

Fingerprint BeginningJudge::fingerprint(std::span<const std::uint8_t> beginning) const {
  Mixer mixer;
  for (std::size_t k = 0; k < kinds_.loop.size(); ++k)
    mixer.add(std::uint64_t{left_[k]});
  std::size_t undecided = size_; // from here on the sequence itself matters
  for (std::size_t i = 0; i < model_.operands.size(); ++i) {
    const Trace& t = trace_[i];
    const bool more = t.decided < hierarchy_.levels[i].size();
    if (more && !takes_largest_[hierarchy_.levels[i][t.decided].node]) {
      const std::size_t done = t.decided == 0 ? 0 : allocation_.at.cut[i][t.decided - 1];
      undecided = std::min(undecided, done);
    }
  }
  for (std::size_t i = 0; i < model_.operands.size(); ++i) {
    const Trace& t = trace_[i];
    mixer.add(std::uint64_t{t.decided});
    mixer.add(t.leading == size_ ? -1.0 : prefix_[t.leading]);
    for (std::size_t l = 0; l < t.decided; ++l) {
      const Cut& cut = t.cuts[l];
      mixer.add(prefix_[cut.position]);
      mixer.add(cut.elements);
      mixer.add(cut.shared_axes);
      mixer.add(cut.relevant_run);
      mixer.add(cut.irrelevant_run);
      mixer.add(std::uint64_t{cut.growing});
    }
    if (t.decided == hierarchy_.levels[i].size())
      continue;
    mixer.add(t.end.relevant_run);
    mixer.add(t.end.irrelevant_run);
    if (!whole_numbers_)
      footprint_[i].each_number([&](double number) { mixer.add(number); });
    if (!takes_largest_[hierarchy_.levels[i][t.decided].node]) {
      const std::size_t done = t.decided == 0 ? 0 : allocation_.at.cut[i][t.decided - 1];
      mixer.add(std::uint64_t{done - undecided});
    }
  }
  for (std::size_t i = undecided; i < size_; ++i)
    mixer.add(std::uint64_t{beginning[i]} + 1);
  return mixer.result();
}

bool BeginningJudge::judge(std::span<const std::uint8_t> beginning, double max_cycles,
                           PrefixBound& outlook) {
  lay_out(beginning);
  if (!allocate_beginning(model_, hierarchy_, spatial_.exact, {{loops_.data(), size_}, rest_},
                          allocation_)) {
    return false;
  }
  for (std::size_t i = 0; i < model_.operands.size(); ++i) {
    trace(i);
    set_boundaries(i);
  }
  outlook.bound.latency = traffic_.min_cycles(boundaries_);
  if (outlook.bound.latency > max_cycles)
    return false;
  outlook.bound.energy = traffic_.min_energy(boundaries_);
  outlook.fingerprint = fingerprint(beginning);
  return true;
}

} // namespace monet::core_cost_detail
