// A space without files, an evaluator that invents figures, and a strategy that asks for
// everything: for tests of the store and of the loop around it.
#pragma once

#include "base/shared/rng.hpp"

#include "monet/explore/explore.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>

namespace monet {

inline void PrintTo(const DesignResult& result, std::ostream* out) {
  *out << "design " << result.id << (result.feasible ? "" : ": " + result.reason);
}

} // namespace monet

namespace monet::test {

/// parameters x values, each value its number.
inline Space toy_space(const std::vector<std::size_t>& counts, const std::string& hash = "feed") {
  Space space;
  space.name = "toy";
  space.origin = "toy.yaml";
  space.content_hash = hash;
  space.files = {"toy.yaml", "toy.onnx"};
  space.workload.runs = {"inference", "training"};
  for (std::size_t p = 0; p < counts.size(); ++p) {
    Parameter parameter;
    parameter.name = fmt::format("p{}", p);
    for (std::size_t v = 0; v < counts[p]; ++v)
      parameter.values.push_back({true, static_cast<double>(v), fmt::format("{}", v)});
    space.parameters.push_back(parameter);
  }
  return space;
}

/// Figures whose every bit matters, from nothing but the id.
inline DesignResult toy_result(DesignId id) {
  RandomStream random(7, id);
  DesignResult result;
  result.id = id;
  result.area_mm2 = random.unit() * 100;
  result.peak_power_w = static_cast<double>(random.below(9));
  result.frequency_hz = 1e9;
  result.feasible = !random.chance(0.2);
  if (!result.feasible) {
    result.reason = fmt::format("memory \"L1\", of core {},\nis too small by {} bytes: \xc3\xa9'",
                                id % 5, random.below(1000));
    return result;
  }
  for (int run = 0; run < 2; ++run)
    result.runs.push_back({static_cast<std::int64_t>(random.below(1ULL << 60)),
                           random.unit() * 1e-300 + random.unit() * 1e12,
                           static_cast<std::int64_t>(random.below(1ULL << 40))});
  return result;
}

inline std::vector<DesignResult> toy_results(DesignId count) {
  std::vector<DesignResult> results;
  for (DesignId id = 0; id < count; ++id)
    results.push_back(toy_result(id));
  return results;
}

class ToyEvaluator final : public DesignEvaluator {
public:
  explicit ToyEvaluator(std::function<void(DesignId)> first = {}) : first_(std::move(first)) {}
  DesignResult evaluate(DesignId id) override {
    if (first_)
      first_(id);
    return toy_result(id);
  }
  DesignBound bound(DesignId) override {
    DesignBound bound;
    bound.runs.resize(2);
    return bound;
  }

private:
  std::function<void(DesignId)> first_;
};

/// Ids 0 .. count - 1 in batches, each batch backwards; checks what it is told.
class ToyStrategy final : public Strategy {
public:
  ToyStrategy(DesignId count, DesignId batch) : count_(count), batch_(batch) {}
  std::vector<DesignId> ask() override {
    asked_.clear();
    for (DesignId i = 0; i < batch_ && next_ < count_; ++i)
      asked_.insert(asked_.begin(), next_++);
    return asked_;
  }
  void tell(std::span<const DesignResult> results) override {
    std::vector<DesignResult> expected;
    for (const DesignId id : asked_)
      expected.push_back(toy_result(id));
    EXPECT_EQ(std::vector<DesignResult>(results.begin(), results.end()), expected);
  }

private:
  DesignId count_, batch_;
  DesignId next_ = 0;
  std::vector<DesignId> asked_;
};

/// A folder of its own, removed at the end.
class Folder {
public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "monet_store_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::filesystem::path path() const { return path_; }

private:
  std::filesystem::path path_;
};

inline std::vector<DesignResult> rows_of(DesignStore& store) {
  std::vector<DesignResult> rows;
  store.each([&](const DesignResult& row) { rows.push_back(row); });
  return rows;
}

} // namespace monet::test
