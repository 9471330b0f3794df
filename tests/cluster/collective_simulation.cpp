#include "cluster/collective_simulation.hpp"

#include "cluster/collective_steps.hpp"

#include <algorithm>
#include <queue>
#include <set>

namespace monet::test {

namespace {

/// What each rank has of each block: a bit for every rank whose contribution is in it.
using Contributions = std::vector<std::vector<std::uint64_t>>;

class Simulator {
public:
  Simulator(const Cluster& cluster, const std::vector<std::int64_t>& devices,
            const Program& program, Contributions& data)
      : cluster_(cluster), devices_(devices), program_(program), data_(data),
        position_(program.threads.size(), 0), open_(program.threads.size(), 0),
        posted_(program.transfers.size(), 0), payload_(program.transfers.size()),
        holders_(program.transfers.size()) {
    const std::size_t ports = devices.size() * cluster.tiers.size();
    sends_.assign(ports, 0);
    receives_.assign(ports, 0);
    sent_.assign(cluster.tiers.size(), 0);
  }

  Simulated run() {
    for (std::size_t t = 0; t < program_.threads.size(); ++t)
      post(t);
    start_what_can();
    while (!events_.empty()) {
      now_ = events_.top().time;
      while (!events_.empty() && events_.top().time == now_) {
        const Event event = events_.top();
        events_.pop();
        if (event.arrives)
          arrive(event.transfer);
        else
          free_ports(event.transfer);
      }
      start_what_can();
    }
    Simulated result;
    result.nanoseconds = now_;
    result.wrong = wrong_;
    result.finished = true;
    for (std::size_t t = 0; t < position_.size(); ++t)
      result.finished = result.finished && position_[t] == program_.threads[t].size();
    for (const double bytes : sent_)
      result.bytes_per_tier.push_back(bytes / static_cast<double>(devices_.size()));
    return result;
  }

private:
  struct Event {
    double time = 0;
    std::size_t transfer = 0;
    bool arrives = false;
    bool operator<(const Event& other) const { return time > other.time; } // earliest on top
  };

  std::size_t tier_of(const Transfer& transfer) const {
    std::int64_t unit = 1;
    for (std::size_t t = 0; t < cluster_.tiers.size(); ++t) {
      unit *= cluster_.tiers[t].size;
      if (devices_[transfer.from] / unit == devices_[transfer.to] / unit)
        return t;
    }
    return cluster_.tiers.size() - 1;
  }
  std::size_t port(std::size_t rank, std::size_t tier) const {
    return rank * cluster_.tiers.size() + tier;
  }

  /// The thread has come to its next step.
  void post(std::size_t thread) {
    const auto& steps = program_.threads[thread];
    while (position_[thread] < steps.size() && steps[position_[thread]].empty())
      ++position_[thread];
    if (position_[thread] == steps.size())
      return;
    open_[thread] = steps[position_[thread]].size();
    for (const std::size_t transfer : steps[position_[thread]]) {
      holders_[transfer].push_back(thread);
      if (++posted_[transfer] == 2)
        ready_.insert({program_.transfers[transfer].priority, transfer});
    }
  }

  void start_what_can() {
    for (auto next = ready_.begin(); next != ready_.end();) {
      const Transfer& transfer = program_.transfers[next->second];
      const std::size_t tier = tier_of(transfer);
      char& sends = sends_[port(transfer.from, tier)];
      char& receives = receives_[port(transfer.to, tier)];
      if (sends != 0 || receives != 0) {
        ++next;
        continue;
      }
      sends = receives = 1;
      const double bytes = program_.block_bytes * static_cast<double>(transfer.blocks.size());
      const Tier& link = cluster_.tiers[tier];
      const double busy = bytes / link.share_gb_per_s();
      sent_[tier] += bytes;
      for (const std::size_t block : transfer.blocks)
        payload_[next->second].push_back(data_[transfer.from][block]);
      events_.push({now_ + busy, next->second, false});
      events_.push({now_ + busy + link.latency_ns, next->second, true});
      next = ready_.erase(next);
    }
  }

  void free_ports(std::size_t id) {
    const Transfer& transfer = program_.transfers[id];
    const std::size_t tier = tier_of(transfer);
    sends_[port(transfer.from, tier)] = 0;
    receives_[port(transfer.to, tier)] = 0;
  }

  void arrive(std::size_t id) {
    const Transfer& transfer = program_.transfers[id];
    for (std::size_t i = 0; i < transfer.blocks.size(); ++i) {
      std::uint64_t& there = data_[transfer.to][transfer.blocks[i]];
      if (transfer.reduces && (there & payload_[id][i]) != 0)
        wrong_ = "a contribution is added twice";
      there = transfer.reduces ? there | payload_[id][i] : payload_[id][i];
    }
    for (const std::size_t thread : holders_[id]) {
      if (--open_[thread] == 0) {
        ++position_[thread];
        post(thread);
      }
    }
  }

  const Cluster& cluster_;
  const std::vector<std::int64_t>& devices_;
  const Program& program_;
  Contributions& data_;
  std::vector<std::size_t> position_; ///< the step that each thread is in
  std::vector<std::size_t> open_;     ///< transfers of the step that have not arrived
  std::vector<int> posted_;
  std::vector<std::vector<std::uint64_t>> payload_;
  std::vector<std::vector<std::size_t>> holders_;
  std::vector<char> sends_;
  std::vector<char> receives_;
  std::vector<double> sent_;
  std::set<std::pair<std::size_t, std::size_t>> ready_;
  std::priority_queue<Event> events_;
  double now_ = 0;
  std::string wrong_;
};

std::uint64_t bit_of(std::size_t rank) {
  return std::uint64_t{1} << rank;
}

Contributions begin_with(Collective collective, std::size_t ranks, std::size_t blocks) {
  Contributions data(ranks, std::vector<std::uint64_t>(blocks, 0));
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const bool has =
          collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
          (collective == Collective::all_gather && b % ranks == r) ||
          (collective == Collective::all_to_all && b / ranks % ranks == r) ||
          ((collective == Collective::broadcast || collective == Collective::point_to_point) &&
           r == 0);
      data[r][b] = has ? bit_of(r) : 0;
    }
  }
  return data;
}

/// What the collective promises: whose contributions a rank must have in the end; 0 = any.
std::uint64_t promise(Collective collective, std::size_t ranks, std::size_t rank,
                      std::size_t block) {
  const std::uint64_t all = ranks == 64 ? ~std::uint64_t{0} : bit_of(ranks) - 1;
  switch (collective) {
  case Collective::all_reduce:
    return all;
  case Collective::reduce_scatter:
    return block % ranks == rank ? all : 0;
  case Collective::all_gather:
    return bit_of(block % ranks);
  case Collective::all_to_all:
    return block % ranks == rank ? bit_of(block / ranks % ranks) : 0;
  case Collective::broadcast:
    return bit_of(0);
  case Collective::point_to_point:
    return rank == 1 ? bit_of(0) : 0;
  }
  return 0;
}

} // namespace

Simulated simulate(const Cluster& cluster, const std::vector<std::int64_t>& devices,
                   Collective collective, CollectiveAlgorithm algorithm, double bytes,
                   const SimulationOptions& options) {
  const std::size_t ranks = devices.size();
  const Program program = steps_of(cluster, devices, collective, algorithm, bytes, options);
  Contributions data = begin_with(collective, ranks, program.blocks);
  Simulated result = Simulator(cluster, devices, program, data).run();
  for (std::size_t r = 0; r < ranks && result.wrong.empty(); ++r) {
    for (std::size_t b = 0; b < program.blocks; ++b) {
      const std::uint64_t due = promise(collective, ranks, r, b);
      if (due != 0 && data[r][b] != due)
        result.wrong = "rank " + std::to_string(r) + " lacks block " + std::to_string(b);
    }
  }
  return result;
}

} // namespace monet::test
