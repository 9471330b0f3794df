// 2,000 mutated inputs: each is read or refused with a located InputError. Nothing else may leave a
// reader. The mutations are a function of a fixed seed, so a failure names an input that can be
// made again.
#include "base/input_cases.hpp"
#include "base/shared/rng.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/core_cost/layers.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace monet {
namespace {

namespace fs = std::filesystem;

/// A seed file and the reader it is meant for.
struct Seed {
  std::string name;
  std::string bytes;
  std::function<void(const std::string&)> read;
};

constexpr std::array kNumbers{
    "-1", "0", "9223372036854775807", "1e400", "999999999999", "0x10", "''", "[]", "null"};

class Random {
public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t bound) {
    return bound == 0 ? 0 : random_bits(seed_, counter_++) % bound;
  }

private:
  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

/// Replaces one run of digits by something a number should not be.
void damage_number(std::string& bytes, Random& random) {
  const std::size_t from = random.below(bytes.size());
  const auto begin = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  const auto end = std::find_if(begin, bytes.end(), [](char c) { return c < '0' || c > '9'; });
  bytes.replace(begin, end, kNumbers[random.below(kNumbers.size())]);
}

std::string mutated(std::string bytes, Random& random) {
  const std::size_t times = 1 + random.below(4);
  for (std::size_t i = 0; i < times && !bytes.empty(); ++i) {
    const std::size_t at = random.below(bytes.size());
    const std::size_t length = 1 + random.below(std::min<std::size_t>(32, bytes.size() - at));
    switch (random.below(7)) {
    case 0:
      bytes[at] = static_cast<char>(random.below(256));
      break;
    case 1:
      bytes.erase(at, length);
      break;
    case 2:
      bytes.insert(at, bytes.substr(random.below(bytes.size()), length));
      break;
    case 3:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 4:
      bytes.resize(at);
      break;
    case 5:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, '\xff');
      break;
    default:
      damage_number(bytes, random);
      break;
    }
  }
  return bytes;
}

void read_network(const std::string& bytes) {
  OnnxReadOptions options;
  options.batch = 2;
  const Graph graph = read_onnx_bytes(bytes, "mutated.onnx", options);
  verify(graph);
  verify(fold_views(make_training_graph(graph, {})));
}

void read_training(const std::string& text) {
  ProblemList problems;
  read_training_options(parse_yaml(text, "mutated.yaml"), problems);
  problems.throw_if_any();
}

void read_system(const std::string& text) {
  const std::string cores = std::string(MONET_SOURCE_DIR) + "/data/hardware/cores/";
  const Chip chip =
      parse_chip(text, "mutated.yaml", [&](const std::string& name, const SourceLoc& where) {
        const std::string path = cores + fs::path(name).filename().string();
        if (!fs::is_regular_file(path))
          throw InputError(where, "no such core file");
        return FileText{path, read_file(path)};
      });
  verify(chip);
}

std::vector<Seed> seeds_in(const std::string& folder, const std::string& extension,
                           const std::function<void(const std::string&)>& read,
                           std::size_t max_bytes) {
  std::vector<Seed> seeds;
  const fs::path root = fs::path(MONET_SOURCE_DIR) / folder;
  if (!fs::exists(root))
    return seeds;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!entry.is_regular_file() || (!extension.empty() && entry.path().extension() != extension))
      continue;
    if (entry.file_size() > max_bytes)
      continue;
    seeds.push_back(
        {folder + "/" + entry.path().filename().string(), read_file(entry.path().string()), read});
  }
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.name < b.name; });
  return seeds;
}

std::vector<Seed> all_seeds() {
  constexpr std::size_t kSmall = 32 << 10;
  std::vector<Seed> seeds;
  const auto add = [&](std::vector<Seed> more) {
    std::move(more.begin(), more.end(), std::back_inserter(seeds));
  };
  add(seeds_in("data/workload", ".onnx", read_network, kSmall));
  add(seeds_in("fuzz/corpus/onnx", "", read_network, kSmall));
  add(seeds_in("data/hardware", ".yaml", read_system, kSmall));
  add(seeds_in(
      "data/hardware/cores", ".yaml",
      [](const std::string& text) { parse_core(text, "mutated.yaml"); }, kSmall));
  add(seeds_in(
      "data/mapping", ".yaml", [](const std::string& text) { parse_mapping(text, "mutated.yaml"); },
      kSmall));
  add(seeds_in(
      "tests/fixtures/zigzag/layers", ".yaml",
      [](const std::string& text) { parse_layers(text, "mutated.yaml"); }, kSmall));
  add(seeds_in("data/training", ".yaml", read_training, kSmall));
  for (const char* kind : {"chip", "core"}) {
    for (const test::InputCase& one : test::input_cases(kind))
      seeds.push_back({one.name, one.text(), read_system});
  }
  return seeds;
}

void expect_located(const InputError& error) {
  ASSERT_FALSE(error.problems().empty());
  for (const InputProblem& problem : error.problems()) {
    EXPECT_FALSE(problem.where.to_string().empty()) << problem.what;
    EXPECT_FALSE(problem.what.empty());
  }
}

TEST(Mutation, seeds_of_ours_are_read_before_they_are_damaged) {
  for (const Seed& seed : all_seeds()) {
    if (seed.name.starts_with("data/")) {
      EXPECT_NO_THROW(seed.read(seed.bytes)) << seed.name;
    }
  }
}

TEST(Mutation, two_thousand_damaged_inputs_are_read_or_refused_with_a_place) {
  constexpr std::size_t kInputs = 2000;
  const std::vector<Seed> seeds = all_seeds();
  ASSERT_GE(seeds.size(), 12U);
  std::size_t read = 0;
  std::size_t refused = 0;
  for (std::size_t i = 0; i < kInputs; ++i) {
    const Seed& seed = seeds[i % seeds.size()];
    Random random(i);
    const std::string bytes = mutated(seed.bytes, random);
    SCOPED_TRACE("input " + std::to_string(i) + " from " + seed.name);
    try {
      seed.read(bytes);
      ++read;
    } catch (const InputError& error) {
      ++refused;
      expect_located(error);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "neither read nor refused as input: " << error.what();
    }
    if (HasFatalFailure())
      return;
  }
  RecordProperty("read", static_cast<int>(read));
  RecordProperty("refused", static_cast<int>(refused));
  std::printf("%zu inputs: %zu read, %zu refused with a place\n", kInputs, read, refused);
  EXPECT_EQ(read + refused, kInputs);
  EXPECT_GT(refused, kInputs / 4); // the mutations do damage
}

} // namespace
} // namespace monet
