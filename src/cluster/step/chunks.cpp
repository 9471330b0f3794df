// Divides a profile's blocks into the parts of a pipeline, and computes the times and peak memory
// of blocks and parts. Used by build.cpp and bounds.cpp.
#include "cluster/step/step.hpp"

#include <algorithm>
#include <ranges>

namespace monet::cluster_step {

using cluster_cost::Block;
using cluster_cost::joined;
using cluster_cost::PassCost;
using cluster_cost::Profile;

PassTime time_of(const PassCost& pass, bool overlap) {
  const double device = pass.compute + pass.exchange;
  const double launched = std::max(device, pass.host);
  if (!overlap)
    return {launched + pass.gather + pass.link, pass.exchange + pass.gather, launched - device,
            pass.link};
  const double gathered = std::max(launched, pass.gather);
  const double total = std::max(gathered, pass.link);
  return {total, pass.exchange + (gathered - launched), launched - device, total - gathered};
}

namespace {

PassCost at_speed(PassCost pass, double speed) {
  pass.compute /= speed;
  return pass;
}

} // namespace

BlockTimes times_of(const Block& block, const ParallelStrategy& strategy, double speed) {
  const bool split = splits_backward(strategy.schedule);
  const auto time = [&](const PassCost& pass) {
    return time_of(at_speed(pass, speed), strategy.overlap);
  };
  PassCost after = joined(block.recompute, block.backward);
  if (!split)
    after = joined(after, block.weight);
  BlockTimes times{.forward = time(block.forward),
                   .backward = time(after),
                   .weight = split ? time(block.weight) : PassTime{}};
  const double recompute = time(block.recompute).total;
  const double input = time(block.backward).total;
  const double weight = split ? 0 : time(block.weight).total;
  const double all_shares = recompute + input + weight;
  if (all_shares > 0) {
    times.share_of_recompute = recompute / all_shares;
    times.share_of_weight = weight / all_shares;
  }
  return times;
}

double update_time(const Block& block, bool overlap, double speed) {
  const double update = block.update / speed;
  return overlap ? std::max(update, block.state_copy) : update + 2 * block.state_copy;
}

bool has_even_parts(const Profile& profile, const ParallelStrategy& strategy) {
  const auto parts = static_cast<std::size_t>(strategy.parts());
  const std::size_t blocks = profile.sequence.size();
  return blocks >= 3 && (blocks - 2) % parts == 0 && profile.blocks[0].name == "begin";
}

std::vector<std::size_t> part_begins(const Profile& profile, const ParallelStrategy& strategy) {
  const auto parts = static_cast<std::size_t>(strategy.parts());
  const std::size_t blocks = profile.sequence.size();
  std::vector<std::size_t> begins{0};
  if (!strategy.layers.empty()) {
    std::int64_t at = 1; // after the embedding
    for (std::size_t part = 0; part + 1 < parts; ++part) {
      at += strategy.layers[part];
      begins.push_back(static_cast<std::size_t>(at));
    }
    begins.push_back(blocks);
    return begins;
  }
  if (has_even_parts(profile, strategy)) {
    for (std::size_t part = 1; part < parts; ++part)
      begins.push_back(1 + part * (blocks - 2) / parts);
    begins.push_back(blocks);
    return begins;
  }
  std::vector<Nanoseconds> times;
  for (const std::size_t i : profile.sequence) {
    const BlockTimes of = times_of(profile.blocks[i], strategy);
    times.push_back(whole_nanoseconds(of.forward.total + of.backward.total + of.weight.total));
  }
  begins.clear();
  for (const std::int64_t begin : balance(times, 0, 0, static_cast<std::int64_t>(parts)))
    begins.push_back(static_cast<std::size_t>(begin));
  return begins;
}

std::int64_t temporaries_of(const Profile& profile, std::span<const std::size_t> blocks) {
  std::int64_t most = 0;
  std::int64_t later = 0;
  for (const std::size_t i : std::views::reverse(blocks)) {
    most = std::max(most, profile.blocks[i].temporary_bytes - later);
    later += profile.blocks[i].stored_bytes;
  }
  return most;
}

namespace {

/// The sum of `bytes` over a block and its neighbours in `blocks`.
std::int64_t window(const Profile& profile, std::span<const std::size_t> blocks, std::size_t at,
                    std::int64_t Block::*bytes) {
  std::int64_t sum = profile.blocks[blocks[at]].*bytes;
  if (at > 0)
    sum += profile.blocks[blocks[at - 1]].*bytes;
  if (at + 1 < blocks.size())
    sum += profile.blocks[blocks[at + 1]].*bytes;
  return sum;
}

} // namespace

std::int64_t on_their_way(const Profile& profile, std::span<const std::size_t> blocks,
                          std::int64_t Block::*bytes) {
  std::int64_t most = 0;
  for (std::size_t at = 0; at < blocks.size(); ++at)
    most = std::max(most, window(profile, blocks, at, bytes));
  return most;
}

OffloadPeak offload_peak(const Profile& profile, std::span<const std::size_t> blocks,
                         std::int64_t kept) {
  OffloadPeak peak;
  std::int64_t later = 0;
  for (std::size_t at = blocks.size(); at-- > 0;) {
    const Block& block = profile.blocks[blocks[at]];
    const std::int64_t stored = std::min(window(profile, blocks, at, &Block::stored_bytes),
                                         std::max(kept - later, std::int64_t{0}));
    if (block.temporary_bytes + stored >= peak.temporaries + peak.stored)
      peak = {block.temporary_bytes, stored};
    later += block.stored_bytes;
  }
  return peak;
}

} // namespace monet::cluster_step
