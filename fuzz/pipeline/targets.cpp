// What the command line does with a file of somebody else, from end to end.
#include "pipeline/command_line.hpp"
#include "target.hpp"

#include "monet/base/errors.hpp"
#include "monet/explore/space.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>

namespace monet::fuzz {

namespace {

/// The commands of one target, chosen by the input. Made when they are first used.
class Commands {
public:
  explicit Commands(std::vector<std::string> words) : words_(std::move(words)) {}

  void run(std::string_view input, std::uint64_t choice) {
    if (lines_.empty()) {
      internal_check(std::freopen("/dev/null", "w", stdout) != nullptr, "no /dev/null");
      for (const std::string& words : words_)
        lines_.emplace_back(words, file_.path());
    }
    file_.write(input);
    lines_[choice % lines_.size()].run();
  }

private:
  std::vector<std::string> words_;
  InputFile file_;
  std::deque<CommandLine> lines_;
};

constexpr const char* kPair = " --verify --hardware $/fuzz/chips/pair.yaml --lpf-limit 2";
constexpr const char* kOthers[]{
    " --verify --lpf-limit 2 --hardware $/data/hardware/single_core_mcu.yaml",
    " --verify --lpf-limit 2 --hardware $/data/hardware/tpu_like_quad_core.yaml"};
constexpr const char* kTraining[]{"", " --training $/fuzz/training/mse_sgd.yaml",
                                  " --training $/fuzz/training/sum_adam.yaml",
                                  " --training $/data/training/bf16_mixed.yaml"};

void schedule_network(std::string_view model) {
  static Commands commands = [] {
    std::vector<std::string> lines;
    for (const char* training : kTraining) {
      for (const char* mode : {"layer-by-layer", "fused", "auto"})
        lines.push_back(std::string("schedule --workload @") + kPair + training + " --mode " +
                        mode);
      lines.push_back(std::string("schedule --workload @ --halo recomputed --priority order --mode "
                                  "fused --batch 2 --json /dev/null") +
                      kPair + training);
    }
    for (const char* chip : kOthers)
      lines.push_back(std::string("schedule --workload @") + chip + kTraining[1]);
    return Commands(lines);
  }();
  commands.run(model, variation(model));
}

void optimise_network(std::string_view model) {
  static Commands commands = [] {
    std::vector<std::string> lines;
    for (const char* training : kTraining) {
      const std::string step = std::string(" --workload @ --json /dev/null") + kPair + training;
      lines.push_back("optimise fusion --evaluations 3" + step);
      lines.push_back("optimise allocation --evaluations 3 --population 2" + step);
      lines.push_back("optimise joint --group-evaluations 0 --core-evaluations 3 --levels 1 "
                      "--rounds 1" +
                      step);
      lines.push_back("optimise joint --group-evaluations 0 --core-evaluations 0 --levels 2 "
                      "--rounds 1 --budget 70%" +
                      step);
      lines.push_back("optimise checkpointing" + step);
      lines.push_back("optimise checkpointing --method heuristics --budget 60% --memory stored" +
                      step);
    }
    lines.push_back(std::string("optimise joint --evaluations 3 --workload @") + kPair);
    lines.push_back("optimise fusion --model einsum --workload @ --lpf-limit 2 --hardware "
                    "$/data/hardware/cores/mcu.yaml");
    return Commands(lines);
  }();
  commands.run(model, variation(model));
}

void execute_network(std::string_view model) {
  static Commands commands = [] {
    std::vector<std::string> lines;
    for (const char* training : kTraining) {
      for (const char* arithmetic : {"fp32", "fp64"})
        lines.push_back(std::string("graph @ --execute --steps 2 --memory-limit 64MiB --json "
                                    "/dev/null --svg /dev/null -o /dev/null --arithmetic ") +
                        arithmetic + training);
      lines.push_back(std::string("graph @ --execute --batch 2 --memory-limit 64MiB") + training);
    }
    lines.push_back("graph @ --inference");
    return Commands(lines);
  }();
  commands.run(model, variation(model));
}

void cost_network(std::string_view model) {
  static Commands commands(
      {"core --workload @ --lpf-limit 2 --hardware $/data/hardware/cores/mcu.yaml"});
  commands.run(model, 0);
}

/// Of networks with few tiles: those in fixed orders, and the optimum.
void map_pairs(std::string_view model) {
  static Commands commands([] {
    std::vector<std::string> lines;
    for (const char* technique : {"sequential", "algorithm-1", "joint"})
      lines.push_back(std::string("backward --tiles array --json /dev/null --hardware "
                                  "$/data/hardware/npu_small.yaml --workload @ --technique ") +
                      technique);
    return lines;
  }());
  commands.run(model, variation(model));
}

/// By its length: the same text for all of them would find less.
void model_chip(std::string_view text) {
  static Commands commands(
      {"schedule --verify --lpf-limit 2 --hardware @ --workload "
       "$/fuzz/networks/low_rank.onnx "
       "--training $/fuzz/training/mse_sgd.yaml",
       "schedule --verify --lpf-limit 2 --mode layer-by-layer --hardware @ --workload "
       "$/fuzz/networks/rezero_conv_tanh.onnx",
       "core --lpf-limit 2 --hardware @ --workload "
       "$/fuzz/networks/rezero_conv_tanh.onnx"});
  commands.run(text, text.size());
}

void train(std::string_view text) {
  static Commands commands({"graph $/fuzz/networks/low_rank.onnx --training @ --execute",
                            "graph $/fuzz/networks/rezero_conv_tanh.onnx --training @",
                            "graph $/fuzz/networks/rezero_conv_tanh.onnx --precision @"});
  commands.run(text, text.size());
}

void show_report(std::string_view text) {
  static Commands commands({"report @ -o /dev/null"});
  commands.run(text, 0);
}

/// A space whose designs can be counted, and made.
void make_designs(std::string_view text) {
  const Space space = parse_space(text, "space.yaml");
  constexpr std::uint64_t kSome = 8;
  for (DesignId id = 0; id < std::min(space.size(), kSome); ++id) {
    if (space.broken_constraint(id).empty())
      verify(space.chip(id));
  }
}

/// Of JSON, or of a store.
void compare_explorations(std::string_view text) {
  static Commands commands({"explore --compare @ @ --json /dev/null"});
  commands.run(text, 0);
}

constexpr Target kTargets[]{
    {"schedule", Format::onnx, schedule_network},
    {"optimise", Format::onnx, optimise_network},
    {"graph", Format::onnx, execute_network},
    {"core", Format::onnx, cost_network},
    {"backward", Format::onnx, map_pairs},
    {"chip", Format::yaml, model_chip},
    {"training", Format::yaml, train},
    {"report", Format::json, show_report},
    {"compare", Format::json, compare_explorations},
    {"store", Format::bytes, compare_explorations},
    {"spaces", Format::yaml, make_designs},
};

} // namespace

std::span<const Target> targets() {
  return kTargets;
}

} // namespace monet::fuzz
