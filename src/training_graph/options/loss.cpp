// The `loss:` part of a training file.
#include "training_graph/options/reader.hpp"

#include <fmt/core.h>

#include <span>

namespace monet {

namespace {

using Kind = ElementwiseLoss::Kind;

CrossEntropy of_log_probabilities() {
  CrossEntropy nll;
  nll.of_log_probabilities = true;
  return nll;
}

void read_kind(const YamlNode& node, ProblemList& problems, Loss& loss) {
  const Choice<Loss> losses[]{{"cross_entropy", CrossEntropy{}},
                              {"nll", of_log_probabilities()},
                              {"mse", Mse{}},
                              {"l1", ElementwiseLoss{Kind::l1}},
                              {"smooth_l1", ElementwiseLoss{Kind::smooth_l1}},
                              {"huber", ElementwiseLoss{Kind::huber}},
                              {"bce", ElementwiseLoss{Kind::bce}},
                              {"bce_with_logits", BceWithLogits{}},
                              {"kl_div", ElementwiseLoss{Kind::kl_div}},
                              {"ctc", Ctc{}},
                              {"none", NoLoss{}},
                              {"network", NetworkLoss{}}};
  read_choice(node, problems, losses, loss);
}

std::vector<double> read_weights(const YamlNode& node, ProblemList& problems) {
  std::vector<double> weights;
  const bool list = node.kind == YamlNode::Kind::sequence;
  for (const YamlNode& item : list ? std::span(node.items) : std::span(&node, 1)) {
    const double weight = as_number(item, problems).value_or(1.0);
    if (!(weight >= 0.0))
      problems.add(item.where, fmt::format("a weight of {} is below 0", weight));
    weights.push_back(weight);
  }
  if (weights.empty())
    problems.add(node.where, "a number or a list of numbers is expected");
  return weights;
}

/// The settings of one loss; one of another loss than the one chosen is a mistake.
class LossSettings {
public:
  LossSettings(YamlMap& map, ProblemList& problems, Loss& loss)
      : map_(map), problems_(problems), loss_(loss) {}

  void read() {
    of_classes();
    of_elements();
    if (const YamlNode* weights = of("pos_weight", get<BceWithLogits>(), "bce_with_logits"))
      get<BceWithLogits>()->pos_weight = read_weights(*weights, problems_);
    reduction();
    of_sequences();
    of_network();
  }

private:
  template <class T>
  T* get() {
    return std::get_if<T>(&loss_);
  }
  ElementwiseLoss* elementwise(Kind kind) {
    auto* loss = get<ElementwiseLoss>();
    return loss && loss->kind == kind ? loss : nullptr;
  }

  const YamlNode* of(std::string_view key, bool chosen, std::string_view owner) {
    const YamlNode* node = map_.find(key);
    if (node == nullptr || chosen)
      return node;
    problems_.add(node->where, fmt::format("'{}' is a setting of {}", key, owner));
    return nullptr;
  }

  void of_classes() {
    auto* classes = get<CrossEntropy>();
    const bool logits = classes && !classes->of_log_probabilities;
    if (const YamlNode* smoothing = of("label_smoothing", logits, "cross_entropy")) {
      classes->label_smoothing = as_number(*smoothing, problems_).value_or(0.0);
      if (!(classes->label_smoothing >= 0.0 && classes->label_smoothing <= 1.0)) {
        problems_.add(smoothing->where, fmt::format("'label_smoothing' is {}, outside [0, 1]",
                                                    classes->label_smoothing));
      }
    }
    constexpr std::string_view kOwners = "cross_entropy and nll";
    if (const YamlNode* ignored = of("ignore_index", classes, kOwners))
      classes->ignore_index = as_integer(*ignored, problems_);
    if (const YamlNode* axis = of("class_axis", classes, kOwners))
      classes->class_axis = as_integer(*axis, problems_);
    if (const YamlNode* weights = of("weight", classes, kOwners))
      classes->weight = read_weights(*weights, problems_);
  }

  void of_elements() {
    auto* smooth = elementwise(Kind::smooth_l1);
    auto* huber = elementwise(Kind::huber);
    if (const YamlNode* beta = of("beta", smooth, "smooth_l1"))
      threshold(*beta, "beta", smooth->threshold, true);
    if (const YamlNode* delta = of("delta", huber, "huber"))
      threshold(*delta, "delta", huber->threshold, false);
    auto* divergence = elementwise(Kind::kl_div);
    if (const YamlNode* logs = of("log_target", divergence, "kl_div");
        logs && as_boolean(*logs, problems_).value_or(false))
      divergence->kind = Kind::kl_div_of_logs;
  }

  void threshold(const YamlNode& node, std::string_view key, double& value, bool may_be_zero) {
    value = as_number(node, problems_).value_or(1.0);
    if (!(value > 0.0) && !(may_be_zero && value == 0.0))
      problems_.add(node.where, fmt::format("'{}' is {}, not above 0", key, value));
  }

  void reduction() {
    auto* classes = get<CrossEntropy>();
    auto* elements = get<ElementwiseLoss>();
    auto* squares = get<Mse>();
    auto* binary = get<BceWithLogits>();
    auto* sequences = get<Ctc>();
    Reduction* chosen = classes     ? &classes->reduction
                        : elements  ? &elements->reduction
                        : squares   ? &squares->reduction
                        : binary    ? &binary->reduction
                        : sequences ? &sequences->reduction
                                    : nullptr;
    const YamlNode* node = of("reduction", chosen, "losses that are computed from an output");
    if (!node)
      return;
    const Choice<Reduction> reductions[]{
        {"mean", Reduction::mean}, {"sum", Reduction::sum}, {"batchmean", Reduction::batch_mean}};
    read_choice(*node, problems_, reductions, *chosen);
    if ((classes || sequences) && *chosen == Reduction::batch_mean)
      problems_.add(node->where, "this loss is a mean over labels, or a sum");
  }

  void of_sequences() {
    auto* ctc = get<Ctc>();
    if (const YamlNode* length = of("target_length", ctc, "ctc")) {
      ctc->target_length = as_integer(*length, problems_).value_or(0);
      if (ctc->target_length < 0)
        problems_.add(length->where, "'target_length' is a number of labels");
    } else if (ctc) {
      problems_.add(map_.node().where, "'target_length' is missing: labels of each sample");
    }
    if (const YamlNode* blank = of("blank", ctc, "ctc"))
      ctc->blank = as_integer(*blank, problems_).value_or(0);
    if (const YamlNode* drop = of("zero_infinity", ctc, "ctc"))
      ctc->zero_infinity = as_boolean(*drop, problems_).value_or(false);
  }

  void of_network() {
    auto* network = get<NetworkLoss>();
    const YamlNode* outputs = of("outputs", network, "network");
    if (!outputs)
      return;
    if (outputs->kind != YamlNode::Kind::map)
      problems_.add(outputs->where, "'outputs' has a weight for each output that is a loss");
    for (const YamlNode::Entry& entry : outputs->entries)
      network->outputs.emplace_back(entry.key, as_number(entry.value, problems_).value_or(1.0));
  }

  YamlMap& map_;
  ProblemList& problems_;
  Loss& loss_;
};

void read_settings(YamlMap& map, ProblemList& problems, Loss& loss) {
  read_key(map, problems, "type", read_kind, loss);
  LossSettings(map, problems, loss).read();
}

/// Reads one of several losses: its output, settings and scale.
LossTerm read_term(const YamlNode& node, ProblemList& problems) {
  LossTerm term;
  if (node.kind != YamlNode::Kind::map) {
    read_kind(node, problems, term.loss);
  } else {
    YamlMap map(node, problems);
    read_settings(map, problems, term.loss);
    if (const YamlNode* output = map.find("output"))
      term.output = as_string(*output, problems).value_or("");
    if (const YamlNode* scale = map.find("scale"))
      term.weight = as_number(*scale, problems).value_or(1.0);
    map.finish();
  }
  if (std::holds_alternative<NoLoss>(term.loss) || std::holds_alternative<NetworkLoss>(term.loss))
    problems.add(node.where, "is not a loss of one output; 'outputs' of 'network' accepts several");
  return term;
}

} // namespace

void read_loss(const YamlNode& node, ProblemList& problems, Loss& loss) {
  if (node.kind == YamlNode::Kind::sequence) {
    LossSum sum;
    for (const YamlNode& item : node.items)
      sum.terms.push_back(read_term(item, problems));
    if (sum.terms.empty())
      problems.add(node.where, "a loss, or a list of them, is expected");
    loss = std::move(sum);
    return;
  }
  if (node.kind != YamlNode::Kind::map) {
    read_kind(node, problems, loss);
    return;
  }
  YamlMap map(node, problems);
  read_settings(map, problems, loss);
  map.finish();
}

} // namespace monet
