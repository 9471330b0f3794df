#include "cluster/collective_steps.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

namespace monet::test {

namespace {

using Blocks = std::vector<std::size_t>;
using Members = std::vector<std::size_t>;
/// The blocks of each member.
using Shares = std::vector<Blocks>;

void append(Blocks& to, const Blocks& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Blocks all_of(const Shares& shares) {
  Blocks all;
  for (const Blocks& share : shares)
    append(all, share);
  return all;
}

/// A thread a rank, all of one priority: one piece of a message.
class Lane {
public:
  Lane(Program& program, std::size_t ranks, std::size_t priority)
      : program_(&program), first_(program.threads.size()), priority_(priority) {
    program.threads.resize(first_ + ranks);
  }

  /// Transfers that a rank begins together.
  void round(std::vector<Transfer> transfers) {
    std::vector<std::size_t> opened;
    for (Transfer& transfer : transfers) {
      const std::size_t id = add(std::move(transfer));
      for (const std::size_t rank : {program_->transfers[id].from, program_->transfers[id].to}) {
        auto& steps = program_->threads[first_ + rank];
        if (std::find(opened.begin(), opened.end(), rank) == opened.end()) {
          opened.push_back(rank);
          steps.emplace_back();
        }
        steps.back().push_back(id);
      }
    }
  }
  std::size_t add(Transfer transfer) {
    transfer.priority = priority_;
    program_->transfers.push_back(std::move(transfer));
    return program_->transfers.size() - 1;
  }
  void step(std::size_t rank, std::vector<std::size_t> transfers) {
    program_->threads[first_ + rank].push_back(std::move(transfers));
  }

private:
  Program* program_;
  std::size_t first_;
  std::size_t priority_;
};

// Reduce-scatters and all-gathers: member i ends up with, or begins with, share i.

void ring(Lane& lane, const Members& members, const Shares& shares, bool reduces) {
  const std::size_t n = members.size();
  for (std::size_t s = 0; s + 1 < n; ++s) {
    std::vector<Transfer> round;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t share = (i + n + n - s - (reduces ? 1 : 0)) % n;
      round.push_back({members[i], members[(i + 1) % n], shares[share], reduces});
    }
    lane.round(std::move(round));
  }
}

void direct(Lane& lane, const Members& members, const Shares& shares, bool reduces) {
  const std::size_t n = members.size();
  std::vector<Transfer> round;
  for (std::size_t shift = 1; shift < n; ++shift) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t to = (i + shift) % n;
      round.push_back({members[i], members[to], shares[reduces ? to : i], reduces});
    }
  }
  lane.round(std::move(round));
}

/// One distance of a halving or doubling between powers of two: i and i ^ distance exchange the
/// shares that agree with the receiver in all bits that are settled.
void exchange_halves(Lane& lane, const Members& members, const Shares& shares, std::size_t distance,
                     std::size_t settled, bool reduces) {
  std::vector<Transfer> round;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t other = i ^ distance;
    const std::size_t like = reduces ? other : i;
    Blocks blocks;
    for (std::size_t j = 0; j < shares.size(); ++j) {
      if (((j ^ like) & settled) == 0)
        append(blocks, shares[j]);
    }
    round.push_back({members[i], members[other], blocks, reduces});
  }
  lane.round(std::move(round));
}

/// Smallest distance first for a reduce-scatter where `inward`, largest first where not; an
/// all-gather goes the other way round.
void halve(Lane& lane, const Members& members, const Shares& shares, bool reduces, bool inward) {
  const std::size_t n = members.size();
  std::vector<std::size_t> distances;
  for (std::size_t d = 1; d < n; d *= 2)
    distances.push_back(d);
  if (!inward)
    std::reverse(distances.begin(), distances.end());
  std::size_t settled = 0;
  if (reduces) {
    for (const std::size_t d : distances) {
      settled |= d;
      exchange_halves(lane, members, shares, d, settled, true);
    }
    return;
  }
  settled = n - 1;
  for (auto d = distances.rbegin(); d != distances.rend(); ++d) {
    exchange_halves(lane, members, shares, *d, settled, false);
    settled &= ~*d;
  }
}

/// Ranks beyond a power of two and their partners: in the first rounds all goes to the partners,
/// in the last what is theirs comes back.
void halve_any(Lane& lane, const Members& members, const Shares& shares, bool reduces) {
  const std::size_t core = std::bit_floor(members.size());
  const std::size_t extra = members.size() - core;
  const Members inner(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(core));
  if (extra == 0) {
    halve(lane, members, shares, reduces, true);
    return;
  }
  Shares joined(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(core));
  std::vector<Transfer> in;
  std::vector<Transfer> out;
  for (std::size_t e = 0; e < extra; ++e) {
    append(joined[e], shares[core + e]);
    const Blocks all = all_of(shares);
    in.push_back({members[core + e], members[e], reduces ? all : shares[core + e], reduces});
    out.push_back({members[e], members[core + e], reduces ? shares[core + e] : all, false});
  }
  lane.round(in);
  halve(lane, inner, joined, reduces, false);
  lane.round(out);
}

void half_collective(Lane& lane, CollectiveAlgorithm algorithm, const Members& members,
                     const Shares& shares, bool reduces) {
  if (algorithm == CollectiveAlgorithm::ring)
    ring(lane, members, shares, reduces);
  else if (algorithm == CollectiveAlgorithm::direct)
    direct(lane, members, shares, reduces);
  else
    halve_any(lane, members, shares, reduces);
}

/// An all-reduce between a power of two, with all that the others have handed over before.
void all_reduce_by_halving(Lane& lane, const Members& members, const Blocks& blocks) {
  const std::size_t core = std::bit_floor(members.size());
  const Members inner(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(core));
  Shares shares(core);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    shares[b % core].push_back(blocks[b]);
  std::vector<Transfer> in;
  std::vector<Transfer> out;
  for (std::size_t e = core; e < members.size(); ++e) {
    in.push_back({members[e], members[e - core], blocks, true});
    out.push_back({members[e - core], members[e], blocks, false});
  }
  lane.round(in);
  halve(lane, inner, shares, true, true);
  halve(lane, inner, shares, false, true);
  lane.round(out);
}

/// NCCL's binary tree: the parent of r, none for 0.
std::size_t parent_of(std::size_t r, std::size_t n) {
  const std::size_t bit = r & (~r + 1);
  const std::size_t up = (r ^ bit) | (bit << 1);
  return up < n ? up : r ^ bit;
}

/// Up one tree and down again; the second tree is the first one turned round, or shifted.
void tree(Lane& lane, const Members& members, const Blocks& blocks, bool second) {
  const std::size_t n = members.size();
  const auto member = [&](std::size_t position) {
    if (!second)
      return members[position];
    return members[n % 2 == 0 ? n - 1 - position : (position + 1) % n];
  };
  std::vector<std::size_t> ups(n);
  std::vector<std::size_t> downs(n);
  std::vector<std::vector<std::size_t>> from_children(n);
  std::vector<std::vector<std::size_t>> to_children(n);
  for (std::size_t r = 1; r < n; ++r) {
    const std::size_t parent = parent_of(r, n);
    ups[r] = lane.add({member(r), member(parent), blocks, true});
    downs[r] = lane.add({member(parent), member(r), blocks, false});
    from_children[parent].push_back(ups[r]);
    to_children[parent].push_back(downs[r]);
  }
  for (std::size_t r = 0; r < n; ++r) {
    lane.step(member(r), from_children[r]);
    if (r > 0) {
      lane.step(member(r), {ups[r]});
      lane.step(member(r), {downs[r]});
    }
    lane.step(member(r), to_children[r]);
  }
}

void broadcast(Lane& lane, CollectiveAlgorithm algorithm, const Members& members,
               const Blocks& blocks) {
  const std::size_t n = members.size();
  if (algorithm == CollectiveAlgorithm::direct) {
    std::vector<Transfer> round;
    for (std::size_t i = 1; i < n; ++i)
      round.push_back({members[0], members[i], blocks, false});
    lane.round(round);
    return;
  }
  if (algorithm == CollectiveAlgorithm::ring) {
    for (std::size_t i = 0; i + 1 < n; ++i)
      lane.round({{members[i], members[i + 1], blocks, false}});
    return;
  }
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    std::vector<Transfer> round;
    for (std::size_t i = 0; i < distance && i + distance < n; ++i)
      round.push_back({members[i], members[i + distance], blocks, false});
    lane.round(round);
  }
}

/// Passes pieces on: in step s, rank i sends piece s - i while piece s - i + 1 comes.
void chain(Lane& lane, const Members& members, const Shares& pieces) {
  const std::size_t n = members.size();
  for (std::size_t s = 0; s + 2 < n + pieces.size() + 1; ++s) {
    std::vector<Transfer> round;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      if (s >= i && s - i < pieces.size())
        round.push_back({members[i], members[i + 1], pieces[s - i], false});
    }
    lane.round(round);
  }
}

/// Which place of each tier a rank is in, of an even group: digits of its number, innermost first.
struct Digits {
  std::vector<std::size_t> fans;

  std::size_t digit(std::size_t rank, std::size_t level) const {
    return rank / below(level) % fans[level];
  }
  std::size_t below(std::size_t level) const {
    return std::accumulate(fans.begin(), fans.begin() + static_cast<std::ptrdiff_t>(level),
                           std::size_t{1}, std::multiplies<>());
  }
  std::size_t with(std::size_t rank, std::size_t level, std::size_t digit_there) const {
    return rank - digit(rank, level) * below(level) + digit_there * below(level);
  }
  /// Ranks that differ from `rank` in this level alone; empty unless it is the first of them.
  Members group_of(std::size_t rank, std::size_t level) const {
    Members group;
    for (std::size_t d = 0; digit(rank, level) == 0 && d < fans[level]; ++d)
      group.push_back(with(rank, level, d));
    return group;
  }
};

Digits digits_of(const Cluster& cluster, const std::vector<std::int64_t>& devices) {
  const GroupPlacement placement = place(cluster, devices);
  Digits digits;
  for (std::size_t i = 0; placement.is_even() && i < placement.count; ++i)
    digits.fans.push_back(static_cast<std::size_t>(placement.levels[i].fan));
  if (digits.fans.empty())
    digits.fans.push_back(devices.size());
  return digits;
}

/// Pairwise: in each round all ranks move by the same digits.
void exchange(Lane& lane, const Digits& digits, std::size_t ranks, bool at_once) {
  std::vector<Transfer> all;
  for (std::size_t shift = 1; shift < ranks; ++shift) {
    std::vector<Transfer> round;
    for (std::size_t r = 0; r < ranks; ++r) {
      std::size_t to = r;
      for (std::size_t level = 0; level < digits.fans.size(); ++level) {
        const std::size_t moved =
            (digits.digit(r, level) + digits.digit(shift, level)) % digits.fans[level];
        to = digits.with(to, level, moved);
      }
      round.push_back({r, to, {r * ranks + to}, false});
    }
    if (at_once)
      all.insert(all.end(), round.begin(), round.end());
    else
      lane.round(round);
  }
  if (at_once)
    lane.round(all);
}

void bruck(Lane& lane, std::size_t ranks) {
  for (std::size_t bit = 1; bit < ranks; bit *= 2) {
    std::vector<Transfer> round;
    for (std::size_t at = 0; at < ranks; ++at) {
      Blocks blocks;
      for (std::size_t way = bit; way < ranks; ++way) {
        const std::size_t from = (at + ranks - way % bit) % ranks;
        if ((way & bit) != 0)
          blocks.push_back(from * ranks + (from + way) % ranks);
      }
      round.push_back({at, (at + bit) % ranks, blocks, false});
    }
    lane.round(round);
  }
}

/// Level by level, messages come to where the digit of their receiver is.
void exchange_by_levels(Lane& lane, const Digits& digits, std::size_t ranks, bool at_once,
                        std::size_t offset) {
  for (std::size_t level = 0; level < digits.fans.size(); ++level) {
    std::vector<std::vector<Transfer>> rounds(at_once ? 1 : digits.fans[level] - 1);
    for (std::size_t shift = 1; shift < digits.fans[level]; ++shift) {
      for (std::size_t at = 0; at < ranks; ++at) {
        const std::size_t digit = (digits.digit(at, level) + shift) % digits.fans[level];
        Blocks blocks;
        for (std::size_t m = 0; m < ranks * ranks; ++m) {
          std::size_t place = m / ranks;
          for (std::size_t done = 0; done < level; ++done)
            place = digits.with(place, done, digits.digit(m % ranks, done));
          if (place == at && digits.digit(m % ranks, level) == digit)
            blocks.push_back(offset + m);
        }
        rounds[at_once ? 0 : shift - 1].push_back(
            {at, digits.with(at, level, digit), blocks, false});
      }
    }
    for (auto& round : rounds)
      lane.round(std::move(round));
  }
}

class Builder {
public:
  Builder(const Cluster& cluster, const std::vector<std::int64_t>& devices, Collective collective,
          CollectiveAlgorithm algorithm, const SimulationOptions& options)
      : ranks_(devices.size()), digits_(digits_of(cluster, devices)), collective_(collective),
        algorithm_(algorithm), inside_(options.inside),
        chunks_(static_cast<std::size_t>(options.chunks)) {}

  Program build(double bytes) {
    if (algorithm_ == CollectiveAlgorithm::hierarchical)
      build_hierarchical();
    else
      build_flat();
    const std::size_t pieces =
        collective_ == Collective::all_to_all ? program_.blocks / ranks_ : program_.blocks;
    program_.block_bytes = bytes / static_cast<double>(pieces);
    return std::move(program_);
  }

private:
  Members everyone() const {
    Members members(ranks_);
    std::iota(members.begin(), members.end(), 0);
    return members;
  }
  Lane lane(std::size_t priority) { return Lane(program_, ranks_, priority); }
  static Shares singles(std::size_t count) {
    Shares shares(count);
    for (std::size_t i = 0; i < count; ++i)
      shares[i] = {i};
    return shares;
  }

  void build_flat() {
    Lane only = lane(0);
    program_.blocks = ranks_;
    switch (collective_) {
    case Collective::all_reduce:
      all_reduce(only);
      break;
    case Collective::reduce_scatter:
    case Collective::all_gather:
      half_collective(only, algorithm_, everyone(), singles(ranks_),
                      collective_ == Collective::reduce_scatter);
      break;
    case Collective::all_to_all:
      program_.blocks = ranks_ * ranks_;
      if (algorithm_ == CollectiveAlgorithm::halving_doubling)
        bruck(only, ranks_);
      else
        exchange(only, digits_, ranks_, algorithm_ == CollectiveAlgorithm::direct);
      break;
    case Collective::broadcast:
      program_.blocks = chunks_;
      if (algorithm_ == CollectiveAlgorithm::ring)
        chain(only, everyone(), singles(chunks_));
      else
        broadcast(only, algorithm_, everyone(), all_of(singles(chunks_)));
      break;
    case Collective::point_to_point:
      program_.blocks = 1;
      only.round({{0, 1, {0}, false}});
      break;
    }
  }

  void all_reduce(Lane& only) {
    if (algorithm_ == CollectiveAlgorithm::tree) {
      program_.blocks = 2 * chunks_;
      for (std::size_t b = 0; b < program_.blocks; ++b) {
        Lane piece = lane(b);
        tree(piece, everyone(), {b}, b % 2 == 1);
      }
    } else if (algorithm_ == CollectiveAlgorithm::halving_doubling) {
      program_.blocks = std::bit_floor(ranks_);
      all_reduce_by_halving(only, everyone(), all_of(singles(program_.blocks)));
    } else {
      half_collective(only, algorithm_, everyone(), singles(ranks_), true);
      half_collective(only, algorithm_, everyone(), singles(ranks_), false);
    }
  }

  /// Blocks of a chunk that are with `rank`'s group when the inner levels are done, by the digit
  /// of this level: who of the group gets them.
  Shares shares_at(std::size_t rank, std::size_t level, std::size_t chunk) const {
    Shares shares(digits_.fans[level]);
    for (std::size_t b = 0; b < ranks_; ++b) {
      bool here = true;
      for (std::size_t inner = 0; inner < level; ++inner)
        here = here && digits_.digit(b, inner) == digits_.digit(rank, inner);
      if (here)
        shares[digits_.digit(b, level)].push_back(chunk * ranks_ + b);
    }
    return shares;
  }

  void half_level(Lane& piece, std::size_t level, std::size_t chunk, bool reduces) {
    for (std::size_t r = 0; r < ranks_; ++r) {
      const Members group = digits_.group_of(r, level);
      if (!group.empty())
        half_collective(piece, inside_, group, shares_at(r, level, chunk), reduces);
    }
  }

  void build_hierarchical() {
    const std::size_t levels = digits_.fans.size();
    const bool exchanges = collective_ == Collective::all_to_all;
    program_.blocks = chunks_ * (exchanges ? ranks_ * ranks_ : ranks_);
    for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
      Lane piece = lane(chunk);
      if (exchanges) {
        exchange_by_levels(piece, digits_, ranks_, inside_ == CollectiveAlgorithm::direct,
                           chunk * ranks_ * ranks_);
      } else if (collective_ == Collective::broadcast) {
        spread(piece, chunk);
      } else {
        for (std::size_t l = 0; l < levels && collective_ != Collective::all_gather; ++l)
          half_level(piece, l, chunk, true);
        for (std::size_t l = levels; l > 0 && collective_ != Collective::reduce_scatter; --l)
          half_level(piece, l - 1, chunk, false);
      }
    }
  }

  void spread(Lane& piece, std::size_t chunk) {
    Blocks blocks;
    for (std::size_t b = 0; b < ranks_; ++b)
      blocks.push_back(chunk * ranks_ + b);
    for (std::size_t level = digits_.fans.size(); level > 0; --level) {
      for (std::size_t r = 0; r < ranks_; ++r) {
        const bool first = r % digits_.below(level - 1) == 0;
        const Members group = digits_.group_of(r, level - 1);
        if (!group.empty() && first)
          broadcast(piece, inside_, group, blocks);
      }
    }
  }

  std::size_t ranks_;
  Digits digits_;
  Collective collective_;
  CollectiveAlgorithm algorithm_;
  CollectiveAlgorithm inside_;
  std::size_t chunks_;
  Program program_;
};

} // namespace

Program steps_of(const Cluster& cluster, const std::vector<std::int64_t>& devices,
                 Collective collective, CollectiveAlgorithm algorithm, double bytes,
                 const SimulationOptions& options) {
  return Builder(cluster, devices, collective, algorithm, options).build(bytes);
}

} // namespace monet::test
