// A step of a pipeline once more, without anything of the library but the orders: where parts are
// is written down again, and times are the least that satisfy every wait, found by sweeping over
// all stages until nothing changes.
#pragma once

#include "monet/cluster/pipeline.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace monet::test {

using PipelineOrders = std::vector<std::vector<PipelineTask>>;

inline PipelineOrders orders_of(const PipelineProblem& q) {
  PipelineOrders orders;
  for (std::int64_t i = 0; i < q.stages; ++i)
    orders.push_back(stage_order(q.kind, q.stages, q.chunks, q.micro_batches, i));
  return orders;
}

class SweptPipeline {
public:
  SweptPipeline(const PipelineProblem& q, const PipelineOrders& orders) : q_(q), orders_(orders) {
    const bool v = q.kind == PipelineKind::zero_bubble_v;
    for (std::int64_t c = 0; c < q.chunks; ++c) {
      for (std::int64_t i = 0; i < q.stages; ++i)
        places_.push_back({v && c == 1 ? q.stages - 1 - i : i, c});
    }
    split_ = q.kind >= PipelineKind::zero_bubble_h1;
    arrivals_[0].assign(places_.size(), std::vector<Nanoseconds>(batches()));
    arrivals_[1] = arrivals_[0];
  }

  /// Nothing where stages wait for each other (as long as passes take time).
  std::optional<PipelineTimes> times() {
    std::size_t passes = 1;
    for (const auto& order : orders_)
      passes += order.size();
    for (std::size_t sweeps = 0; changed_; ++sweeps) {
      if (sweeps > passes)
        return std::nullopt;
      changed_ = false;
      for (std::int64_t i = 0; i < q_.stages; ++i)
        sweep(i);
    }
    return with_tails();
  }

private:
  std::size_t batches() const { return static_cast<std::size_t>(q_.micro_batches); }
  std::size_t part(std::int64_t stage, std::int64_t chunk) const {
    const auto found = std::find(places_.begin(), places_.end(), std::pair(stage, chunk));
    return static_cast<std::size_t>(found - places_.begin());
  }

  void sweep(std::int64_t stage) {
    Nanoseconds now = 0;
    std::map<std::int64_t, Nanoseconds> links; // by receiver
    bool first = true;
    for (const PipelineTask& task : orders_[static_cast<std::size_t>(stage)]) {
      const std::size_t k = part(stage, task.chunk), j = static_cast<std::size_t>(task.micro_batch);
      const ChunkCost& cost = q_.costs[static_cast<std::size_t>(stage * q_.chunks + task.chunk)];
      if (task.pass != PipelinePass::weight)
        now = std::max(now, arrivals_[task.pass == PipelinePass::backward][k][j]);
      if (std::exchange(first, false))
        begin_[stage] = now;
      now += task.pass == PipelinePass::forward    ? cost.forward
             : task.pass == PipelinePass::backward ? cost.recompute + cost.backward_input
                                                   : cost.backward_weight;
      if (task.pass == PipelinePass::forward && k + 1 < places_.size())
        send(stage, k, k + 1, j, now, links);
      if (task.pass == (split_ ? PipelinePass::backward : PipelinePass::weight) && k > 0)
        send(stage, k, k - 1, j, now, links);
    }
    end_[stage] = now;
  }

  void send(std::int64_t stage, std::size_t from, std::size_t to, std::size_t j, Nanoseconds& now,
            std::map<std::int64_t, Nanoseconds>& links) {
    const bool gradient = to < from;
    const auto& sends = gradient ? q_.backward_sends : q_.forward_sends;
    const std::int64_t receiver = places_[to].first;
    Nanoseconds arrival = now;
    if (receiver != stage) {
      const Nanoseconds length = sends.empty() ? 0 : sends[std::min(from, to)];
      if (q_.overlap_sends)
        arrival = links[receiver] = std::max(now, links[receiver]) + length;
      else
        arrival = now = now + length;
    }
    Nanoseconds& known = arrivals_[gradient][to][j];
    changed_ = changed_ || arrival != known;
    known = arrival;
  }

  PipelineTimes with_tails() {
    const auto tail = [&](std::int64_t i) {
      return q_.tails.empty() ? StageTail{} : q_.tails[static_cast<std::size_t>(i)];
    };
    PipelineTimes times;
    Nanoseconds together = 0;
    for (std::int64_t i = 0; i < q_.stages; ++i)
      together = std::max(together, end_[i] + tail(i).synchronise);
    for (std::int64_t i = 0; i < q_.stages; ++i) {
      const Nanoseconds finish =
          q_.validate_after_step ? end_[i] + tail(i).synchronise + tail(i).update + q_.validation
                                 : together + q_.global_reduce + tail(i).update;
      times.makespan = std::max(times.makespan, finish);
      times.period = std::max(times.period, finish - (q_.validate_after_step ? begin_[i] : 0));
    }
    return times;
  }

  const PipelineProblem& q_;
  const PipelineOrders& orders_;
  std::vector<std::pair<std::int64_t, std::int64_t>> places_;     ///< stage and chunk of each part
  std::array<std::vector<std::vector<Nanoseconds>>, 2> arrivals_; ///< forward, backward; by part
  std::map<std::int64_t, Nanoseconds> begin_, end_;
  bool split_ = false;
  bool changed_ = true;
};

} // namespace monet::test
