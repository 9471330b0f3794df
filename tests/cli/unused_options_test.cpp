// An option that is given changes a figure of the result, or is a warning there.
#include "base/shared/sha512.hpp"
#include "cli/run_monet.hpp"
#include "level.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <map>
#include <random>

namespace monet::test {
namespace MONET_TEST_FILE {

using OrderedJson = nlohmann::ordered_json;
using Keys = std::map<std::string, std::string>;

std::string flow_map(const Keys& keys) {
  std::string text;
  for (const auto& [key, value] : keys)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  return "{" + text + "}";
}

/// Figures of a result, without what was asked for.
OrderedJson figures(OrderedJson result) {
  for (const char* key : {"name", "cluster", "workload", "strategy", "provenance", "warnings"})
    result.erase(key);
  return result;
}

bool is_warned_of(const OrderedJson& result, const std::string& key) {
  for (const OrderedJson& warning : result.value("warnings", OrderedJson::array())) {
    const auto message = warning.at("message").get<std::string>();
    if (message.find(key) != std::string::npos)
      return true;
  }
  return false;
}

struct Option {
  std::string section, key, value;
};

const std::array kOptions{
    Option{"parallel", "zero", "1"},
    Option{"parallel", "zero", "2"},
    Option{"parallel", "zero", "3"},
    Option{"parallel", "sequence", "true"},
    Option{"parallel", "overlap", "false"},
    Option{"parallel", "recompute", "selective"},
    Option{"parallel", "recompute", "full"},
    Option{"parallel", "offload", "states"},
    Option{"parallel", "offload", "activations"},
    Option{"parallel", "schedule", "gpipe"},
    Option{"parallel", "schedule", "zb-h1"},
    Option{"parallel", "virtual", "2"},
    Option{"parallel", "layers", "[1, 3]"},
    Option{"cluster", "host_ns_per_kernel", "9000"},
    Option{"cluster", "attention_share", "0.4"},
    Option{"workload", "in_place_loss", "false"},
    Option{"transformer", "dropout", "0.1"},
    Option{"transformer", "attention_dropout", "0.1"},
    Option{"transformer", "causal", "false"},
    Option{"transformer", "kv_heads", "2"},
    Option{"training", "attention", "fused"},
    Option{"training", "batch_norm", "inference"},
    Option{"training", "clip_global_norm", "1.0"},
    Option{"training", "ema", "0.99"},
    Option{"training", "loss_scale", "dynamic"},
    Option{"training", "update", "unfused"},
    Option{"training", "store", "pytorch-eager"},
    Option{"precision", "accumulate", "bf16"},
    Option{"precision", "reductions", "bf16"},
    Option{"precision", "weight_gradients", "fp32"},
    Option{"precision", "frozen_weights", "fp32"},
};

class Experiments : public ::testing::Test {
protected:
  /// A small transformer on A100s.
  std::map<std::string, Keys> some(std::mt19937_64& random) const {
    const auto pick = [&](std::initializer_list<int> from) {
      return *(from.begin() + static_cast<std::ptrdiff_t>(random() % from.size()));
    };
    const int data = pick({1, 2}), tensor = pick({1, 2}), pipeline = pick({1, 2});
    std::map<std::string, Keys> keys;
    keys["cluster"] = {{"file", repository("data/cluster/dgx_a100.yaml")},
                       {"devices", std::to_string(data * tensor * pipeline)}};
    keys["transformer"] = {{"layers", "4"},
                           {"hidden", "256"},
                           {"heads", "4"},
                           {"sequence", "64"},
                           {"vocabulary", "256"}};
    keys["parallel"] = {{"data", std::to_string(data)},
                        {"tensor", std::to_string(tensor)},
                        {"pipeline", std::to_string(pipeline)},
                        {"micro_batch", "1"},
                        {"global_batch", std::to_string(data * pick({1, 4}))}};
    keys["training"] = {{"loss", "cross_entropy"}, {"optimizer", "{type: adam}"}};
    keys["precision"] = {{"weights", "bf16"}, {"activations", "bf16"}, {"gradients", "bf16"}};
    if (pick({0, 1}) == 1)
      keys["training"]["attention"] = "fused";
    if (pick({0, 1}) == 1)
      keys["parallel"]["zero"] = "1";
    return keys;
  }

  /// Null where the experiment is refused.
  OrderedJson run(std::map<std::string, Keys> keys) const {
    Keys workload = keys["workload"];
    workload["transformer"] = flow_map(keys["transformer"]);
    keys["training"]["precision"] = flow_map(keys["precision"]);
    const std::string text = fmt::format("cluster: {}\nworkload: {}\ntraining: {}\nparallel: {}\n",
                                         flow_map(keys["cluster"]), flow_map(workload),
                                         flow_map(keys["training"]), flow_map(keys["parallel"]));
    const Ran ran =
        run_monet({"cluster", scratch_.file("e.yaml", text), "--json", "-", "--allow-overflow"},
                  scratch_.path());
    return ran.code == 0 ? OrderedJson::parse(ran.out) : OrderedJson();
  }

  Scratch scratch_;
};

const std::array kTrainingOptions{
    Option{"", "loss", "{type: cross_entropy, label_smoothing: 0.1}"},
    Option{"", "optimizer", "{type: adam, weight_decay: 0.1}"},
    Option{"", "optimizer", "{type: adam, amsgrad: true}"},
    Option{"", "optimizer", "{type: sgd, learning_rate: 0.5}"},
    Option{"", "update", "unfused"},
    Option{"", "clip_global_norm", "1.0"},
    Option{"", "clip_value", "1.0"},
    Option{"", "ema", "0.99"},
    Option{"", "sparse_gradients", "true"},
    Option{"", "gradients", "paired"},
    Option{"", "store", "pytorch-eager"},
    Option{"", "store", "{recompute: [\"*\"]}"},
    Option{"", "offload", "all"},
    Option{"", "attention", "fused"},
    Option{"", "micro_batches", "2"},
    Option{"", "sam", "0.05"},
    Option{"", "loss_scale", "128"},
    Option{"", "trainable", "{train_last: 1}"},
    Option{"", "trainable", "{lora: {rank: 2}}"},
    Option{"", "trainable", "{sparse: {channels: {\"*\": 0.5}}}"},
    Option{"", "outputs", "loss"},
    Option{"", "batch_norm", "inference"},
    Option{"precision", "weights", "bf16"},
    Option{"precision", "frozen_weights", "int8"},
    Option{"precision", "master_weights", "fp64"},
    Option{"precision", "activations", "bf16"},
    Option{"precision", "gradients", "bf16"},
    Option{"precision", "weight_gradients", "fp16"},
    Option{"precision", "optimizer_state", "bf16"},
    Option{"precision", "accumulate", "bf16"},
    Option{"precision", "reductions", "fp64"},
    Option{"precision", "products", "{scaling: current}"},
};

class TrainingFiles : public ::testing::Test {
protected:
  /// Figures of a step, the step itself, and warnings; null where the file is refused.
  OrderedJson run(const std::string& network, Keys training, const Keys& precision) const {
    if (!precision.empty())
      training["precision"] = flow_map(precision);
    const std::string file = scratch_.file("t.yaml", flow_map(training));
    const Ran ran =
        run_monet({"graph", repository("data/workload/" + network), "--batch", "2", "--training",
                   file, "--json", scratch_ / "step.json", "-o", scratch_ / "step.onnx"},
                  scratch_.path());
    if (ran.code != 0)
      return {};
    OrderedJson result = parse_file(scratch_ / "step.json");
    result["step"] = sha512_hex(read_file(scratch_ / "step.onnx"));
    return result;
  }

  Scratch scratch_;
};

} // namespace MONET_TEST_FILE

using namespace MONET_TEST_FILE;

TEST_F(Experiments, OfClustersChangeAFigureOrWarnWithEachOption) {
  std::mt19937_64 random(50);
  int compared = 0;
  for (int i = 0; i < cases(20, 60, 1000); ++i) {
    std::map<std::string, Keys> keys = some(random);
    const Option& option = kOptions[random() % kOptions.size()];
    keys[option.section].erase(option.key);
    const OrderedJson without = run(keys);
    keys[option.section][option.key] = option.value;
    const OrderedJson with = run(keys);
    if (without.is_null() || with.is_null())
      continue;
    ++compared;
    EXPECT_TRUE(figures(with) != figures(without) || is_warned_of(with, option.key))
        << option.section << ": " << option.key << ": " << option.value << " with "
        << flow_map(keys["parallel"]) << flow_map(keys["training"]);
  }
  EXPECT_GT(compared, cases(20, 60, 1000) / 2);
}

TEST_F(TrainingFiles, ChangeTheStepOrWarnWithEachOption) {
  std::mt19937_64 random(51);
  int compared = 0;
  for (int i = 0; i < cases(16, 60, 1000); ++i) {
    const std::string network = random() % 2 == 0 ? "gpt2_nano.onnx" : "resnet8_16.onnx";
    Keys training{{"loss", "cross_entropy"}}, precision;
    for (int k = 0; k < 2; ++k) { // beside others
      const Option& other = kTrainingOptions[random() % kTrainingOptions.size()];
      (other.section.empty() ? training : precision)[other.key] = other.value;
    }
    const Option& option = kTrainingOptions[random() % kTrainingOptions.size()];
    Keys& section = option.section.empty() ? training : precision;
    section.erase(option.key);
    const OrderedJson without = run(network, training, precision);
    section[option.key] = option.value;
    const OrderedJson with = run(network, training, precision);
    if (without.is_null() || with.is_null())
      continue;
    ++compared;
    EXPECT_TRUE(figures(with) != figures(without) || is_warned_of(with, option.key))
        << network << ": " << option.key << ": " << option.value << " in " << flow_map(training)
        << flow_map(precision);
  }
  EXPECT_GT(compared, cases(16, 60, 1000) / 3);
}

} // namespace monet::test
