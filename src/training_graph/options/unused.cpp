// Reports options of a training file that change nothing in the step.
#include "training_graph/shared/unused_options.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/warnings.hpp"

#include <algorithm>
#include <utility>

namespace monet {

namespace {

constexpr std::size_t kMaxOperators = 5'000;

class UnusedOptionFinder {
public:
  explicit UnusedOptionFinder(const TrainingOptions& options) : options_(options) {}

  std::vector<OptionLeftOut> run() {
    const TrainingOptions plain;
    reset("attention", options_.attention != plain.attention,
          [](TrainingOptions& o) { o.attention = AttentionForm::exported; });
    reset("update", !options_.update.fused, [](TrainingOptions& o) { o.update.fused = true; });
    reset("clip_global_norm", options_.update.clip_global_norm.has_value(),
          [](TrainingOptions& o) { o.update.clip_global_norm.reset(); });
    reset("clip_value", options_.update.clip_value.has_value(),
          [](TrainingOptions& o) { o.update.clip_value.reset(); });
    reset("ema", options_.update.average_decay.has_value(),
          [](TrainingOptions& o) { o.update.average_decay.reset(); });
    reset("loss_scale", options_.update.loss_scale.has_value(),
          [](TrainingOptions& o) { o.update.loss_scale.reset(); });
    reset("batch_norm", options_.frozen_batch_norm,
          [](TrainingOptions& o) { o.frozen_batch_norm = false; });
    reset("sam", options_.sam_rho.has_value(), [](TrainingOptions& o) { o.sam_rho.reset(); });
    reset("outputs", options_.only_loss, [](TrainingOptions& o) { o.only_loss = false; });
    reset("micro_batches", options_.micro_batches != 1,
          [](TrainingOptions& o) { o.micro_batches = 1; });
    reset("detach", !options_.detach.empty(), [](TrainingOptions& o) { o.detach.clear(); });
    reset("sparse_gradients", !options_.sparse_gradients.empty(),
          [](TrainingOptions& o) { o.sparse_gradients.clear(); });
    reset("gradients", !options_.paired_gradients.empty(),
          [](TrainingOptions& o) { o.paired_gradients.clear(); });
    add_storage();
    add_trainable();
    add_precision();
    return std::move(made_);
  }

private:
  template <class F>
  void reset(const char* key, bool given, F change) {
    if (!given)
      return;
    OptionLeftOut& left = made_.emplace_back(OptionLeftOut{key, options_});
    change(left.options);
  }

  void add_storage() {
    const StorageOptions& storage = options_.storage;
    reset("store: default", storage.policy != StorePolicy::minimal,
          [](TrainingOptions& o) { o.storage.policy = StorePolicy::minimal; });
    reset("store: keep", !storage.keep.empty(), [](TrainingOptions& o) { o.storage.keep.clear(); });
    reset("store: recompute", !storage.recompute.empty(),
          [](TrainingOptions& o) { o.storage.recompute.clear(); });
    reset("offload", !storage.offload.empty(),
          [](TrainingOptions& o) { o.storage.offload.clear(); });
  }

  void add_trainable() {
    const TrainableOptions& trainable = options_.trainable;
    reset("trainable: train", !trainable.train.empty(),
          [](TrainingOptions& o) { o.trainable.train.clear(); });
    reset("trainable: freeze", !trainable.freeze.empty(),
          [](TrainingOptions& o) { o.trainable.freeze.clear(); });
    reset("trainable: layers", trainable.layers.has_value(),
          [](TrainingOptions& o) { o.trainable.layers.reset(); });
    reset("trainable: lora", trainable.lora.has_value(),
          [](TrainingOptions& o) { o.trainable.lora.reset(); });
    reset("trainable: sparse", trainable.sparse.has_value(),
          [](TrainingOptions& o) { o.trainable.sparse.reset(); });
  }

  /// A type that equals the default of its role documents the file and is not reported.
  void add_precision() {
    const Precision& given = options_.precision;
    const ElementType weights = given.weights.value_or(ElementType::fp32);
    const auto role = [&](const char* key, std::optional<ElementType> Precision::*type,
                          auto resolved) {
      Precision without = given;
      (without.*type).reset();
      reset(key, (given.*type).has_value() && resolved(given) != resolved(without),
            [&](TrainingOptions& o) { (o.precision.*type).reset(); });
    };
    const auto of_weights = [](const Precision& p) {
      return p.weights.value_or(ElementType::fp32);
    };
    role("precision: weights", &Precision::weights, of_weights);
    role("precision: activations", &Precision::activations,
         [](const Precision& p) { return p.activations.value_or(ElementType::fp32); });
    role("precision: gradients", &Precision::gradients,
         [&](const Precision& p) { return p.gradient_type(weights); });
    role("precision: weight_gradients", &Precision::weight_gradients,
         [&](const Precision& p) { return p.weight_gradient_type(weights); });
    role("precision: optimizer_state", &Precision::optimizer_state,
         [&](const Precision& p) { return p.state_type(weights); });
    role("precision: master_weights", &Precision::master_weights,
         [&](const Precision& p) { return p.master_weights.value_or(weights); });
    role("precision: reductions", &Precision::reductions,
         [](const Precision& p) { return p.reduction_type(); });
    role("precision: frozen_weights", &Precision::frozen_weights,
         [&](const Precision& p) { return p.frozen_weights.value_or(weights); });
    reset("precision: accumulate", given.accumulate != ElementType::fp32,
          [](TrainingOptions& o) { o.precision.accumulate = ElementType::fp32; });
    reset("precision: products", given.products.has_value(),
          [](TrainingOptions& o) { o.precision.products.reset(); });
    reset("precision: blocks: transposed", given.transposed != TransposedBlocks::copy,
          [](TrainingOptions& o) { o.precision.transposed = TransposedBlocks::copy; });
  }

  const TrainingOptions& options_;
  std::vector<OptionLeftOut> made_;
};

bool is_same(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.shape == b.shape && a.type == b.type && a.kind == b.kind &&
         a.alias_of == b.alias_of;
}

bool is_same(const Operator& a, const Operator& b) {
  return a.op_type == b.op_type && a.domain == b.domain && a.attributes == b.attributes &&
         a.inputs == b.inputs && a.outputs == b.outputs && a.phase == b.phase;
}

template <class Item>
bool are_same(const std::vector<Item>& a, const std::vector<Item>& b) {
  return std::ranges::equal(a, b, [](const Item& x, const Item& y) { return is_same(x, y); });
}

bool is_same(const TrainingGraph& a, const TrainingGraph& b) {
  return are_same(a.graph.tensors(), b.graph.tensors()) &&
         are_same(a.graph.operators(), b.graph.operators()) && a.graph.outputs == b.graph.outputs &&
         a.stored_activations == b.stored_activations && a.stored_bytes == b.stored_bytes &&
         a.owner == b.owner && a.accumulate == b.accumulate && a.store == b.store;
}

} // namespace

std::vector<OptionLeftOut> each_option_left_out(const TrainingOptions& options) {
  return UnusedOptionFinder(options).run();
}

std::vector<std::string> options_without_effect(const Graph& network,
                                                const TrainingOptions& options,
                                                const TrainingGraph& step) {
  std::vector<std::string> keys;
  if (step.graph.operators().size() > kMaxOperators)
    return keys;
  const WarningScope again; // discards warnings that the first graph has reported
  for (const OptionLeftOut& left : each_option_left_out(options)) {
    try {
      if (is_same(make_training_graph(network, left.options), step))
        keys.push_back(left.key);
    } catch (const InputError&) { // the step needs it
    } catch (const InfeasibleError&) {
    }
  }
  return keys;
}

} // namespace monet
