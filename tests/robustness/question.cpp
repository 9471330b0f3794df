#include "robustness/question.hpp"

#include "hardware/shared/array_modes.hpp"
#include "robustness/searches.hpp"
#include "schedule/random_cases.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stage.hpp"
#include "monet/base/yaml.hpp"
#include "monet/report/result.hpp"
#include "monet/workload/imported_steps.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <algorithm>
#include <ctime>
#include <memory>

namespace monet::testing {

namespace {

/// One of these for each key, now and then.
const std::vector<std::vector<std::string>>& training_choices() {
  static const std::vector<std::vector<std::string>> choices{
      {"loss: mse", "loss: {type: mse, reduction: sum}", "loss: cross_entropy", "loss: l1",
       "loss: {type: cross_entropy, label_smoothing: 0.1, ignore_index: 0}", "loss: huber",
       "loss: bce_with_logits", "loss: kl_div", "loss: none", "loss: network", "loss: bce"},
      {"optimizer: sgd", "optimizer: momentum", "optimizer: adamw", "optimizer: rmsprop",
       "optimizer: adagrad", "optimizer: lion", "optimizer: lamb", "optimizer: adafactor",
       "optimizer: muon", "optimizer: {type: adam, amsgrad: true}"},
      {"gradients: paired"},
      {"update: unfused"},
      {"clip_global_norm: 1.0", "clip_value: 0.5"},
      {"ema: 0.9"},
      {"precision: bf16",
       "precision: {weights: bf16, master_weights: fp32, activations: bf16, gradients: bf16}",
       "precision: {activations: fp16}", "precision: {weights: int8, activations: fp8_e4m3}",
       "precision: {weights: mxfp4_e2m1, activations: bf16, gradients: mxint8}",
       "precision: {weights: mxfp8_e4m3, activations: mxfp8_e4m3, gradients: mxfp8_e5m2}",
       "precision: {weights: mxint8, activations: mxint8, gradients: mxint8, master_weights: fp32, "
       "blocks: {transposed: requantise}}",
       "precision: {activations: mxfp6_e3m2, gradients: mxfp6_e3m2, blocks: {shape: 8x8}}",
       "precision: {weights: bf16, activations: bf16, gradients: bf16, products: fp8_e4m3}",
       "precision: {weights: bf16, activations: bf16, gradients: bf16, "
       "products: {scaling: block}}",
       "precision: {weights: bf16, activations: bf16, gradients: bf16, "
       "products: {scaling: current}}"},
      {"store: pytorch-eager", "store: {recompute: ['*']}", "store: {keep: ['*']}",
       "store: {recompute: ['t1*', 't2*'], keep: ['t3*']}"},
      {"attention: fused"},
      {"micro_batches: 2", "micro_batches: 3"},
      {"sam: 0.05"},
      {"loss_scale: dynamic", "loss_scale: 128"},
      {"trainable: {train_last: 1}", "trainable: {freeze: ['w1*', 'w2*']}",
       "trainable: {lora: {rank: 2}}", "trainable: {sparse: {channels: {'*': 0.5}}}",
       "trainable: {layers: {from: 1, to: -1}}"},
      {"sparse_gradients: true"},
      {"outputs: loss"},
      {"batch_norm: inference"},
  };
  return choices;
}

std::vector<std::string> random_training(Random& random) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < training_choices().size(); ++i) {
    if (random.chance(i == 0 ? 85 : i == 1 ? 50 : i == 2 ? 40 : 12))
      lines.push_back(random.pick(training_choices()[i]));
  }
  return lines;
}

SystemShape random_system(Random& random) {
  SystemShape shape;
  shape.cores = static_cast<int>(random.between(1, 6));
  shape.min_bits = random.one_of<std::int64_t>({16, 256, 1 << 10, 1 << 13});
  shape.max_bits = shape.min_bits << random.between(1, 8);
  shape.latency = random.chance(30);
  shape.rows = random.chance(30);
  return shape;
}

Search random_search(Random& random) {
  const std::int64_t choice = random.between(0, 99);
  if (choice < 55)
    return Search::none;
  return kSearches[1 + static_cast<std::size_t>(choice - 55) / 9];
}

TransferRules random_rules(Random& random) {
  TransferRules rules;
  for (bool* rule : {&rules.share_links, &rules.multicast, &rules.exact_overlap, &rules.pieces,
                     &rules.spills_to_cores, &rules.free_routing})
    *rule = random.chance(50);
  return rules;
}

std::string text_of(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

TrainingOptions training_options(const std::vector<std::string>& lines) {
  if (lines.empty())
    return {};
  ProblemList problems;
  TrainingOptions options =
      read_training_options(parse_yaml(text_of(lines), "training.yaml"), problems);
  problems.throw_if_any();
  return options;
}

void make_step(const Question& question, const std::string& onnx, Asked& asked) {
  const TrainingOptions training = training_options(question.training);
  OnnxReadOptions reading;
  if (question.trains) {
    reading.parameters = training.trainable.parameters;
    reading.buffers = training.trainable.buffers;
  }
  ForeignReport report;
  const Graph network =
      recognise(read_onnx_bytes(onnx, "network.onnx", reading), question.trains, report);
  verify(network);
  asked.graph = question.trains ? make_training_graph(network, training)
                                : make_inference_graph(network, training.precision);
  verify(asked.graph);
  asked.step = fold_views(asked.graph);
  verify(asked.step);
}

/// On some chips arrays have modes: one for some of the step's formats, with several products of a
/// multiplier in a cycle, and one for everything that is multiplied.
void add_modes(Random random, const Graph& graph, Chip& chip) {
  if (!random.chance(30))
    return;
  std::vector<TensorFormat> all;
  for (const Operator& op : graph.operators())
    for (const TensorFormat& format : multiplied_formats(graph, op))
      if (std::ranges::find(all, format) == all.end())
        all.push_back(format);
  ArrayMode some, any;
  for (const TensorFormat& format : all)
    if (random.chance(60))
      some.formats.push_back(format);
  some.products = random.one_of<std::int64_t>({2, 3, 4, 8});
  some.energy_pj = static_cast<double>(random.between(1, 8)) / 8;
  any.formats = all;
  any.products = random.between(1, 2);
  any.energy_pj = static_cast<double>(random.between(1, 4)) / 2;
  for (Core& core : chip.cores) {
    if (core.kind != CoreKind::array || all.empty() || random.chance(30))
      continue;
    core.modes = {some, any};
    core.in_modes = std::make_shared<const std::vector<Core>>(
        std::vector<Core>{in_mode(core, some), in_mode(core, any)});
  }
}

void make_options(const Question& question, Random& random, Asked& asked) {
  asked.mode = question.mode;
  asked.options.tiling.halo = question.halo;
  asked.options.schedule.priority = question.priority;
  asked.options.schedule.core_cost.objective = question.objective;
  asked.options.schedule.core_cost.lpf_limit = 4;
  if (question.rules)
    asked.options.schedule.rules = random_rules(random);
  if (question.mapped) {
    asked.mapping = random_mapping(random, asked.step.graph, asked.chip);
    asked.options.tiling.mapping = &asked.mapping;
  }
  if (question.stacks && question.mode != StepMode::layer_by_layer)
    asked.options.tiling.stacks = random_stacks(random, asked.step.graph);
}

void report(const Asked& asked, const ModelledStep& modelled) {
  const StepResult result = result_of(asked.step, modelled);
  const auto json = result_json("question", result, &result, asked.chip, {});
  internal_check(!summary_table(json).empty() && !trace_json(json).empty(), "empty report");
}

void answer(const Question& question, const std::string& onnx) {
  Asked asked;
  Random random(question.seed);
  make_step(question, onnx, asked);
  asked.chip = random_chip(random, question.system);
  add_modes(Random(question.seed + 1), asked.step.graph, asked.chip);
  make_options(question, random, asked);
  if (question.search != Search::none) {
    search(question.search, asked, random);
    return;
  }
  const ModelledStep modelled = model(asked, question.mode, asked.step);
  if (question.reported)
    report(asked, modelled);
}

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

} // namespace

const char* name_of(Search search) {
  constexpr std::array kNames{"none", "fusion", "allocation", "checkpointing", "joint", "einsum"};
  return kNames[static_cast<std::size_t>(search)];
}

Question random_question(std::uint64_t seed) {
  Random random(seed);
  Question question;
  question.seed = random.raw();
  question.network.seed = random.raw();
  for (std::int64_t n = random.between(1, 6); n > 0; --n)
    question.network.layers.push_back(random.raw());
  question.network.largest = random.one_of<std::int64_t>({2, 3, 5, 7});
  question.trains = random.chance(55);
  if (question.trains)
    question.training = random_training(random);
  question.network.begins_with_weight = question.trains && random.chance(80);
  question.system = random_system(random);
  question.mode = random.one_of({StepMode::layer_by_layer, StepMode::fused, StepMode::automatic});
  question.halo = random.chance(65) ? Halo::cached : Halo::recomputed;
  question.mapped = random.chance(35);
  question.stacks = random.chance(35);
  question.rules = random.chance(20);
  question.reported = random.chance(15);
  question.priority = random.one_of({Priority::latency, Priority::memory, Priority::order});
  question.objective = random.one_of({Objective::latency, Objective::energy, Objective::edp});
  question.search = random_search(random);
  return question;
}

Answer ask(const Question& question) {
  Answer made;
  const double begin = processor_seconds();
  try {
    const RandomNetwork network = grow(question.network);
    made.layers = network.layers;
    answer(question, network.onnx);
  } catch (const InputError& error) {
    made.kind = Answer::Kind::refused;
    made.why = error.what();
  } catch (const InfeasibleError& error) {
    made.kind = Answer::Kind::infeasible;
    made.why = error.what();
  } catch (const Stopped& error) { // before there was anything to give
    made.kind = Answer::Kind::stopped;
    made.why = error.what();
  } catch (const std::exception& error) {
    made.kind = Answer::Kind::broken;
    made.why = error.what();
  }
  made.seconds = processor_seconds() - begin;
  return made;
}

namespace {

/// Smaller questions next to this one, the smallest first.
std::vector<Question> smaller(const Question& q) {
  std::vector<Question> made;
  const auto with = [&](bool applies, const std::function<void(Question&)>& change) {
    if (!applies)
      return;
    made.push_back(q);
    change(made.back());
  };
  std::vector<std::uint64_t>& (*layers)(Question&) = [](Question & x) -> auto& {
    return x.network.layers;
  };
  const auto half = static_cast<std::ptrdiff_t>(q.network.layers.size() / 2);
  with(half > 0, [&](Question& x) { layers(x).resize(static_cast<std::size_t>(half)); });
  with(half > 0,
       [&](Question& x) { layers(x).erase(layers(x).begin(), layers(x).begin() + half); });
  for (std::size_t i = 0; i < q.network.layers.size(); ++i)
    with(true,
         [&](Question& x) { layers(x).erase(layers(x).begin() + static_cast<std::ptrdiff_t>(i)); });
  with(q.search != Search::none, [](Question& x) { x.search = Search::none; });
  with(q.trains, [](Question& x) {
    x.trains = false;
    x.training.clear();
  });
  with(!q.training.empty(), [](Question& x) { x.training.clear(); });
  for (std::size_t i = 0; i < q.training.size(); ++i)
    with(true, [&](Question& x) {
      x.training.erase(x.training.begin() + static_cast<std::ptrdiff_t>(i));
    });
  with(q.mode != StepMode::layer_by_layer, [](Question& x) { x.mode = StepMode::layer_by_layer; });
  with(q.mode == StepMode::automatic, [](Question& x) { x.mode = StepMode::fused; });
  with(q.mapped, [](Question& x) { x.mapped = false; });
  with(q.stacks, [](Question& x) { x.stacks = false; });
  with(q.rules, [](Question& x) { x.rules = false; });
  with(q.reported, [](Question& x) { x.reported = false; });
  with(q.system.latency, [](Question& x) { x.system.latency = false; });
  with(q.system.rows, [](Question& x) { x.system.rows = false; });
  with(q.system.cores > 1, [](Question& x) { x.system.cores /= 2; });
  with(q.halo != Halo::cached, [](Question& x) { x.halo = Halo::cached; });
  with(q.priority != Priority::latency, [](Question& x) { x.priority = Priority::latency; });
  with(q.network.begins_with_weight, [](Question& x) { x.network.begins_with_weight = false; });
  with(q.network.largest > 1, [](Question& x) { x.network.largest /= 2; });
  return made;
}

} // namespace

Question shrunk(Question question, const std::function<bool(const Question&)>& fails) {
  const auto tree = rc::shrinkable::shrinkRecur(
      std::move(question), [](const Question& q) { return rc::seq::fromContainer(smaller(q)); });
  return rc::shrinkable::findLocalMin(tree, fails).first;
}

std::string in_words(const Question& q) {
  std::string text = in_words(grow(q.network).onnx);
  text += q.trains ? "training:\n  " + fmt::format("{}\n", fmt::join(q.training, "\n  "))
                   : "inference\n";
  text += fmt::format("mode {}, halos {}, mapped {}, stacks {}, rules {}, priority {}, objective "
                      "{}, search {}, at most {} cores of {} to {} bits, latency {}, rows {}\n",
                      monet::name_of(q.mode), q.halo == Halo::cached ? "cached" : "recomputed",
                      q.mapped, q.stacks, q.rules, static_cast<int>(q.priority),
                      monet::name_of(q.objective), name_of(q.search), q.system.cores,
                      q.system.min_bits, q.system.max_bits, q.system.latency, q.system.rows);
  return text;
}

} // namespace monet::testing
