// Random training options on every small network: a step is made, folded and executed, or refused
// with words; nothing is an internal error or no number, minimal storage is no larger than
// PyTorch's, and how results are stored, offloaded, views folded or updates written changes no
// gradient.
#include "base/shared/rng.hpp"
#include "execute/training_case.hpp"
#include "level.hpp"
#include "training_graph/host_traffic.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace monet {
namespace MONET_TEST_FILE {

using nlohmann::json;
using Gradients = std::map<std::string, std::vector<double>>;

constexpr int kSets = 16;

class Options {
public:
  explicit Options(std::uint64_t seed)
      : rng_(seed), update_rng_(seed, 1), products_(~seed), offload_(seed, 2) {}

  json draw() {
    json options = json::object();
    const std::vector<std::string> optimizers{"sgd",     "momentum", "adam", "adamw",     "rmsprop",
                                              "adagrad", "lion",     "lamb", "adafactor", "muon"};
    options["optimizer"] = {{"type", optimizers[below(optimizers.size())]}};
    if (chance(3))
      options["clip_global_norm"] = 1.0;
    if (chance(4))
      options["attention"] = "fused";
    if (chance(5))
      options["batch_norm"] = "inference";
    if (chance(4))
      options["micro_batches"] = 2;
    if (chance(4))
      options["loss_scale"] = 1024;
    if (chance(3))
      options["precision"] = precision();
    if (chance(2))
      trainable(options);
    around_the_optimizer(options);
    if (!options.contains("precision") && products_.below(3) == 0)
      options["precision"] = products();
    if (offload_.below(3) == 0)
      options["offload"] = "all";
    return options;
  }

  /// Sparse gradients, with an optimiser that takes them, where there is an embedding.
  json draw_sparse() {
    json options = draw();
    options["sparse_gradients"] = true;
    options["optimizer"] = chance(2) ? "sgd" : "adagrad";
    options.erase("clip_value");
    options.erase("trainable");
    options.erase("sam");
    return options;
  }

private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(rng_.below(count)); }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }

  json precision() {
    const std::vector<std::string> types{"fp32", "fp16", "bf16", "fp8_e4m3", "mxfp8_e4m3", "int8"};
    json made = json::object();
    for (const char* role : {"weights", "activations", "gradients", "optimizer_state"}) {
      if (chance(2))
        made[role] = types[below(types.size())];
    }
    if (chance(3))
      made["master_weights"] = "fp32";
    if (chance(3))
      made["accumulate"] = "fp16";
    return made;
  }

  /// From numbers of its own.
  void around_the_optimizer(json& options) {
    const auto one_in = [&](std::uint64_t count) { return update_rng_.below(count) == 0; };
    if (!options.contains("clip_global_norm") && one_in(3))
      options["clip_value"] = 0.01;
    if (one_in(3))
      options["optimizer"]["amsgrad"] = true; // where there is such a thing
    if (one_in(3))
      options["ema"] = {{"decay", 0.9}};
    if (one_in(4))
      options["sam"] = {{"rho", 0.05}};
  }

  /// Products of layers in fp8.
  json products() {
    json made = json::object();
    if (products_.below(2) == 0)
      made = {{"weights", "bf16"}, {"activations", "bf16"}, {"gradients", "bf16"}};
    json products = json::object();
    const auto scaling = products_.below(3);
    if (scaling != 0)
      products["scaling"] = scaling == 1 ? "current" : "block";
    else
      products["amax_history"] = 4;
    if (products_.below(4) == 0)
      products["keep_first_and_last"] = true;
    made["products"] = products;
    return made;
  }

  void trainable(json& options) {
    switch (below(4)) {
    case 0:
      options["trainable"] = {{"train_last", 1}};
      break;
    case 1:
      options["trainable"] = {{"lora", {{"rank", 2}}}};
      break;
    case 2:
      options["trainable"] = {{"sparse", {{"channels", {{"*weight*", 0.5}}}}}};
      break;
    default:
      options["trainable"] = {{"freeze", {"*bias*"}}};
    }
  }

  RandomStream rng_;
  RandomStream update_rng_;
  RandomStream products_; ///< draws of its own, which leave the others as they are
  RandomStream offload_;  ///< likewise
};

class Trial {
public:
  Trial(std::string name, json facts, json options)
      : name_(std::move(name)), facts_(std::move(facts)), options_(std::move(options)) {}

  /// False when the options are refused.
  bool run() {
    try {
      const TrainingGraph minimal = step("minimal", true);
      const TrainingGraph eager = step("pytorch-eager", true);
      compare(minimal, eager);
      return true;
    } catch (const InputError& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
      return false;
    }
  }

private:
  TrainingGraph step(const std::string& store, bool fused) const {
    json more = options_;
    more["store"] = store;
    more["update"] = fused ? "fused" : "unfused";
    return made_with(more);
  }

  TrainingGraph made_with(const json& options) const {
    TrainingGraph made = test::make_training_case(name_, facts_, options);
    verify(made);
    return made;
  }

  std::string where() const { return fmt::format("{} with {}", name_, options_.dump()); }

  Gradients gradients_of(const TrainingGraph& step) const {
    Execution execution(step.graph);
    test::feed_training_case(execution, step, name_, facts_);
    execution.run();
    Gradients gradients;
    for (const ParameterRecord& record : step.parameters) {
      for (const TensorId id : {record.gradient, record.updated}) {
        for (const double number : execution.get(id)) {
          if (std::isfinite(number))
            continue;
          ADD_FAILURE() << where() << ": " << step.graph.tensor(id).name << " is no number";
          break;
        }
      }
      gradients.emplace(step.graph.tensor(record.weight).name, execution.get(record.gradient));
    }
    return gradients;
  }

  void compare(const TrainingGraph& minimal, const TrainingGraph& eager) const {
    const TrainingGraph folded = fold_views(minimal);
    verify(folded);
    verify(fold_views(eager));
    if (options_.value("attention", "") != "fused") { // PyTorch 1.13 has no such operator
      EXPECT_LE(folded.stored_bytes, eager.stored_bytes) << where();
    }
    const Gradients gradients = gradients_of(minimal);
    const Gradients of_eager = gradients_of(eager);
    if (options_.contains("offload"))
      compare_offloaded(minimal, eager, gradients);
    if (!facts_.at("compare").get<bool>())
      return; // dropout: another mask where tensors are called differently
    EXPECT_EQ(of_eager, gradients) << where();
    EXPECT_EQ(gradients_of(step("minimal", false)), gradients) << where();
  }

  /// Masks of dropout too are those of the step that keeps all on the device.
  void compare_offloaded(const TrainingGraph& minimal, const TrainingGraph& eager,
                         const Gradients& gradients) const {
    json kept = options_;
    kept.erase("offload");
    EXPECT_EQ(gradients_of(made_with(kept)), gradients) << where();
    for (const TrainingGraph* made : {&minimal, &eager}) {
      const test::HostTraffic traffic = test::host_traffic(made->graph);
      EXPECT_EQ(traffic.out, traffic.in) << where();
      EXPECT_EQ(traffic.late_readers, 0) << where();
      EXPECT_GT(traffic.out, 0) << where();
    }
  }

  std::string name_;
  json facts_;
  json options_;
};

class RandomOptions : public testing::TestWithParam<std::string> {};

TEST_P(RandomOptions, AreRefusedOrTrain) {
  MONET_FROM_LEVEL(slow);
  int trained = 0;
  int all = 0;
  int sparse = 0;
  std::uint64_t seed = 1;
  for (const std::string& name : test::training_families().at(GetParam())) {
    const json facts = test::read_training_case(name);
    Options options(seed++);
    for (int i = 0; i < kSets; ++i, ++all)
      trained += Trial(name, facts, options.draw()).run() ? 1 : 0;
    sparse += Trial(name, facts, options.draw_sparse()).run() ? 1 : 0;
  }
  fmt::print("  {}: {} of {} option sets train, and {} with sparse gradients\n", GetParam(),
             trained, all, sparse);
  EXPECT_GT(3 * trained, 2 * all);
}

INSTANTIATE_TEST_SUITE_P(Families, RandomOptions, testing::ValuesIn(test::training_family_names()),
                         [](const auto& family) { return family.param; });

} // namespace MONET_TEST_FILE
} // namespace monet
