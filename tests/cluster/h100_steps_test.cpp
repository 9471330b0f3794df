// The model of a step against measured ones: GPTs on one H100.
// docs/explanation/cluster-validation.md has the errors.
#include "monet/base/files.hpp"
#include "monet/cluster/cluster_step.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace monet {
namespace {

/// A row of the file, by the names of its columns.
using Row = std::map<std::string, std::string>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

std::vector<Row> measured_steps() {
  std::vector<Row> rows;
  std::vector<std::string> columns;
  std::string text = read_file(MONET_SOURCE_DIR "/data/cluster/h100_steps.csv");
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line = text.substr(0, end);
    text.erase(0, end + 1);
    if (line.empty() || line[0] == '#')
      continue;
    const std::vector<std::string> cells = cells_of(line);
    if (columns.empty()) {
      columns = cells;
      continue;
    }
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i)
      row[columns[i]] = cells.at(i);
  }
  return rows;
}

std::int64_t count(const Row& row, const std::string& column) {
  return std::stoll(row.at(column));
}

TrainingOptions training_of(const Row& row) {
  TrainingOptions options;
  if (row.at("optimizer") == "sgd")
    options.update.optimizer = Sgd{.momentum = 0.9};
  else
    options.update.optimizer = Adam{};
  if (row.at("type") == "bf16") {
    Precision& precision = options.precision;
    precision.weights = precision.activations = precision.gradients = ElementType::bf16;
    precision.reductions = ElementType::bf16; // cross-entropy of bf16 logits
    precision.optimizer_state = ElementType::bf16;
    if (row.at("states") == "fp32")
      precision.optimizer_state = precision.master_weights = ElementType::fp32;
  } else {
    options.precision.activations = ElementType::tf32; // what TF32 products take fp32 for
    options.precision.gradients = ElementType::tf32;
  }
  if (row.at("attention") == "sdpa")
    options.attention = AttentionForm::fused;
  if (row.at("clip") == "yes")
    options.update.clip_global_norm = 1.0;
  options.storage.policy = StorePolicy::pytorch_eager;
  return options;
}

struct Compared {
  Row row;
  double measured_ns = 0, ns = 0, host_share = 0;
  double measured_bytes = 0, bytes = 0; ///< of the allocator
  double time_error() const { return ns / measured_ns - 1; }
  double memory_error() const { return bytes / measured_bytes - 1; }
};

/// Of the workspace, what is not in the allocator.
constexpr double kContextBytes = 718e6;
/// Eager PyTorch on the measured machine launches a kernel of a training step in 23.8 us.
constexpr double kHostNanoseconds = 23'800;

Compared compare(const Row& row, const Cluster& cluster, const ClusterDevice& device) {
  const ClusterWorkload workload{.transformer =
                                     TransformerShape{.layers = count(row, "layers"),
                                                      .hidden = count(row, "hidden"),
                                                      .heads = count(row, "heads"),
                                                      .sequence = count(row, "sequence"),
                                                      .vocabulary = count(row, "vocabulary")},
                                 .training = training_of(row),
                                 .in_place_loss = false};
  const std::int64_t micro_batch = count(row, "micro_batch");
  const ParallelStrategy strategy{.micro_batch = micro_batch,
                                  .global_batch = micro_batch * count(row, "micro_batches"),
                                  .recompute = row.at("recompute") == "full" ? RecomputeKind::full
                                                                             : RecomputeKind::none};
  const ClusterStep step = ClusterModel(cluster, device, workload).model(strategy);
  const StageResult& stage = step.stages.front();
  return {row,
          std::stod(row.at("step_ns")),
          static_cast<double>(step.time),
          static_cast<double>(stage.share.host) / static_cast<double>(step.time),
          std::stod(row.at("allocated_bytes")),
          static_cast<double>(stage.memory.total()) - kContextBytes};
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> rank(values.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    rank[order[i]] = static_cast<double>(i);
  return rank;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> ra = ranks(a);
  const std::vector<double> rb = ranks(b);
  double squares = 0;
  for (std::size_t i = 0; i < ra.size(); ++i)
    squares += (ra[i] - rb[i]) * (ra[i] - rb[i]);
  const auto n = static_cast<double>(a.size());
  return 1 - 6 * squares / (n * (n * n - 1));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Errors {
  std::vector<double> measured, modelled, time, memory;

  void add(const Compared& one) {
    measured.push_back(one.measured_ns);
    modelled.push_back(one.ns);
    time.push_back(std::abs(one.time_error()));
    memory.push_back(std::abs(one.memory_error()));
  }
  double mean() const {
    return std::accumulate(time.begin(), time.end(), 0.0) / static_cast<double>(time.size());
  }
  double worst() const { return *std::ranges::max_element(time); }
};

void print(const Compared& one) {
  const Row& row = one.row;
  fmt::print("{:>2} x {:>5}, {:>2} heads, {:>5} tokens, {:>2} x {} samples, {:5} {:5} {:4} {:5} "
             "{:4}: {:7.2f} ms {:+6.1f} %, host {:3.0f} %; {:6.2f} GB {:+6.1f} %\n",
             row.at("layers"), row.at("hidden"), row.at("heads"), row.at("sequence"),
             row.at("micro_batch"), row.at("micro_batches"), row.at("attention"),
             row.at("optimizer"), row.at("recompute"), row.at("gradients"), row.at("states"),
             one.measured_ns * 1e-6, 100 * one.time_error(), 100 * one.host_share,
             one.measured_bytes * 1e-9, 100 * one.memory_error());
}

// What docs/explanation/cluster-validation.md says: steps that do not wait for the host, and all.
TEST(MeasuredSteps, OfAnH100AreModelled) {
  const Cluster cluster =
      with_devices(read_cluster(MONET_SOURCE_DIR "/data/cluster/dgx_h100.yaml"), 1);
  ClusterDevice device = read_cluster_device(cluster.device);
  device.table->host_ns_per_kernel = kHostNanoseconds;
  Errors all, on_device, joined;
  for (const Row& row : measured_steps()) {
    const Compared one = compare(row, cluster, device);
    print(one);
    all.add(one);
    if (row.at("attention") == "eager") // scale, mask and softmax are kernels of their own there
      continue;
    joined.add(one);
    if (one.host_share < 0.01)
      on_device.add(one);
  }
  ASSERT_EQ(all.time.size(), 44U);
  ASSERT_GE(on_device.time.size(), 20U);
  const auto print_errors = [](const char* which, const Errors& errors) {
    fmt::print(
        "{} ({}): time {:.1f} % in the mean, {:.1f} at worst, Spearman {:.3f}; memory {:.1f} "
        "% (median)\n",
        which, errors.time.size(), 100 * errors.mean(), 100 * errors.worst(),
        spearman(errors.measured, errors.modelled), 100 * median(errors.memory));
  };
  print_errors("fused attention, on the device", on_device);
  print_errors("fused attention", joined);
  print_errors("all", all);
  EXPECT_LT(on_device.mean(), 0.04);
  EXPECT_LT(on_device.worst(), 0.13);
  EXPECT_GT(spearman(on_device.measured, on_device.modelled), 0.99);
  EXPECT_LT(joined.mean(), 0.10);
  EXPECT_LT(all.mean(), 0.13);
  EXPECT_GT(spearman(all.measured, all.modelled), 0.98);
  EXPECT_LT(median(all.memory), 0.015);
  EXPECT_LT(*std::ranges::max_element(all.memory), 0.06);
}

} // namespace
} // namespace monet
