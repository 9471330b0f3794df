// Builds the graphs of a training step and of a test, and finds their image inputs. run.cpp
// executes them.
#include "base/shared/hints.hpp"
#include "base/shared/sha512.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/fit/dataset.hpp"
#include "monet/fit/run.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace monet {

namespace {

std::string text_of(const Integers& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<TensorId> fed(const Graph& graph, TensorKind kind) {
  std::vector<TensorId> found;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    if (tensor.kind == kind && !tensor.producer && !tensor.shape.empty() && !tensor.values)
      found.emplace_back(i);
  }
  return found;
}

class Preparation {
public:
  Preparation(const TrainRecipe& recipe, const TrainingData& data) : recipe_(recipe), data_(data) {
    setup_.recipe = &recipe;
    setup_.data = &data;
  }

  TrainSetup run() {
    refuse_parts();
    const Graph network = read();
    setup_.step = make_training_graph(network, recipe_.training.value);
    setup_.test = make_inference_graph(network, recipe_.training.value.precision);
    find_images();
    find_labels();
    find_scores();
    measure();
    setup_.identity = sha512_hex(recipe_.text + '\n' + read_file(recipe_.network.value));
    return std::move(setup_);
  }

private:
  /// Rejects split weights: a test graph would not find them by name.
  void refuse_parts() const {
    const TrainableOptions& trainable = recipe_.training.value.trainable;
    if (trainable.lora || trainable.sparse)
      throw InputError(recipe_.training.where,
                       fmt::format("tests do not read the weights that '{}' creates",
                                   trainable.lora ? "lora" : "sparse"),
                       "train whole weights");
  }

  Graph read() const {
    OnnxReadOptions reading;
    reading.batch = recipe_.batch;
    read_for(reading, recipe_.training.value);
    ProblemList problems;
    require_file(recipe_.network.value, recipe_.network.where, problems);
    problems.throw_if_any();
    return read_onnx(recipe_.network.value, reading);
  }

  void find_images() {
    const ImageShape& size = data_.train.shape;
    setup_.images = fed(setup_.step.graph, TensorKind::input);
    const std::vector<TensorId> of_test = fed(setup_.test.graph, TensorKind::input);
    if (of_test.size() != 1 ||
        of_test.size() * static_cast<std::size_t>(setup_.step.micro_batches) !=
            setup_.images.size())
      throw InputError(recipe_.network.where,
                       fmt::format("the network has {} inputs, images are one", of_test.size()));
    setup_.test_images = of_test.front();
    const Tensor& input = setup_.test.graph.tensor(of_test.front());
    const Integers& shape = input.shape;
    if (shape != std::vector{shape.front(), size.channels, size.height, size.width})
      throw InputError(recipe_.network.where,
                       fmt::format("'{}' is {}, the images of the data are {}", input.name,
                                   text_of(shape),
                                   text_of({size.channels, size.height, size.width})));
    setup_.batch = shape.front();
    if (recipe_.batch && *recipe_.batch != setup_.batch)
      throw InputError(
          recipe_.network.where,
          fmt::format("the network's batch is {}, not {}", setup_.batch, *recipe_.batch),
          "leave the batch out, or export the network with a symbolic batch");
  }

  void find_labels() {
    setup_.labels = fed(setup_.step.graph, TensorKind::label);
    const bool one_each =
        static_cast<std::int64_t>(setup_.labels.size()) == setup_.step.micro_batches &&
        std::ranges::all_of(setup_.labels, [&](TensorId id) {
          const Tensor& label = setup_.step.graph.tensor(id);
          return !is_floating(label.type) && label.shape == std::vector{setup_.batch};
        });
    if (!one_each)
      throw InputError(recipe_.training.where,
                       "the targets of the loss are not one class per image",
                       "for example 'loss: cross_entropy'");
    const Loss& loss = recipe_.training.value.loss;
    if (const auto* entropy = std::get_if<CrossEntropy>(&loss))
      setup_.scores_are_logarithms = entropy->of_log_probabilities;
  }

  /// Finds the first output with one number for each image and class.
  void find_scores() {
    const Graph& graph = setup_.test.graph;
    const auto gives = [&](TensorId id) {
      const Tensor& tensor = graph.tensor(id);
      return is_floating(tensor.type) && tensor.shape.size() == 2 &&
             tensor.shape[0] == setup_.batch && tensor.shape[1] >= data_.train.classes;
    };
    const auto found = std::ranges::find_if(graph.outputs, gives);
    if (found == graph.outputs.end())
      throw InputError(
          recipe_.network.where,
          fmt::format("no output has a number for each of {} classes", data_.train.classes));
    setup_.scores = *found;
    const std::string& name = graph.tensor(*found).name;
    for (std::int64_t micro = 1; micro <= setup_.step.micro_batches; ++micro)
      setup_.step_scores.push_back(setup_.step.graph.find_tensor(
          micro == 1 ? name : fmt::format("{}.micro_{}", name, micro)));
  }

  void measure() {
    const std::int64_t images = setup_.batch * setup_.step.micro_batches;
    constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();
    if (images > data_.train.size())
      throw InfeasibleError(
          fmt::format("variant '{}': a step needs {} images, there are {} for training",
                      recipe_.name, images, data_.train.size()));
    setup_.length.steps_of_epoch = data_.train.size() / images;
    const std::int64_t all = recipe_.epochs > 0 && recipe_.epochs < kEndless / images
                                 ? recipe_.epochs * setup_.length.steps_of_epoch
                                 : kEndless;
    setup_.length.steps = recipe_.steps > 0 ? std::min(recipe_.steps, all) : all;
  }

  const TrainRecipe& recipe_;
  const TrainingData& data_;
  TrainSetup setup_;
};

} // namespace

TrainSetup prepare_training(const TrainRecipe& recipe, const TrainingData& data) {
  return Preparation(recipe, data).run();
}

} // namespace monet
