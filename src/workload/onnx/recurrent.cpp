// Unrolls recurrent layers; expand.cpp calls it. One product projects the inputs of all steps; a
// step is one product with the previous state, and element-wise operators. ONNX orders gates i o f
// c (LSTM) and z r h (GRU); a weight reordered for ONNX is used in its original order.
#include "base/shared/checked.hpp"
#include "workload/onnx/expand.hpp"
#include "workload/onnx/gate_order.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace monet::onnx_file {

namespace {

/// Maximum number of steps in all directions; a larger graph would not be usable.
constexpr std::int64_t kMaxSteps = 20'000;

constexpr std::array<OpType, 7> kActivations{
    ops::Sigmoid, ops::Tanh, ops::Relu, ops::HardSigmoid, ops::Elu, ops::Softplus, ops::LeakyRelu};

class Unrolling {
public:
  Unrolling(const Model& model, const Node& node, Values& values)
      : model_(model), node_(node), values_(values), write_(node, values) {}

  std::vector<Node> run() {
    read_sizes();
    check_options();
    find_sources();
    std::string x = node_.inputs[0];
    if (batch_first_)
      x = write_.transpose("X_by_step", x, {1, 0, 2});
    std::vector<Track> tracks;
    for (std::int64_t d = 0; d < directions_; ++d)
      tracks.push_back(run_direction(x, d));
    write_outputs(tracks);
    return write_.take();
  }

private:
  /// Results of one direction.
  struct Track {
    std::vector<std::string> states; ///< h after every step, by position in the sequence: [B, H]
    std::string last;                ///< h and c after the last step
    std::string last_cell;
  };
  /// Parameters of one direction.
  struct Weights {
    std::string recurrent;      ///< [H, gates * H]
    std::string recurrent_late; ///< GRU without linear_before_reset: the part of h~, [H, H]
    std::string late_bias;      ///< GRU with linear_before_reset: recurrent bias of h~, [H]
    std::vector<std::string> activations;
  };

  [[noreturn]] void refuse(std::string_view what, std::string_view detail = {}) const {
    throw InputError(at_node(model_, node_, detail), what);
  }
  bool has(std::size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  const Integers& shape(std::size_t i) const { return values_.at(node_.inputs[i]).shape; }
  void read_sizes() {
    if (!has(0) || !has(1) || !has(2))
      refuse("inputs X, W and R are needed");
    gates_ = node_.op_type == ops::LSTM ? 4 : node_.op_type == ops::GRU ? 3 : 1;
    batch_first_ = node_.attributes.integer("layout", 0) != 0;
    const auto& x = shape(0);
    const auto& w = shape(1);
    const auto& r = shape(2);
    if (x.size() != 3 || w.size() != 3 || r.size() != 3)
      refuse(fmt::format("X, W and R have {}, {} and {} axes, three are expected", x.size(),
                         w.size(), r.size()));
    steps_ = x[batch_first_ ? 1 : 0];
    batch_ = x[batch_first_ ? 0 : 1];
    directions_ = r[0];
    hidden_ = r[2];
    const std::string direction = node_.attributes.text("direction", "forward");
    const bool both = direction == "bidirectional";
    if (!both && direction != "forward" && direction != "reverse")
      refuse(fmt::format("'{}' is not a direction", direction), "attribute 'direction'");
    backwards_ = direction == "reverse";
    const std::int64_t width = checked_multiply(gates_, hidden_);
    if (directions_ != (both ? 2 : 1) || w[0] != directions_ || w[2] != x[2] || w[1] != width ||
        r[1] != width)
      refuse("the shapes of X, W and R do not fit each other");
    if (has(3) && shape(3) != Integers{directions_, checked_multiply(2, width)})
      refuse("the bias does not fit the weights");
    for (const std::size_t state : {std::size_t{5}, std::size_t{6}}) {
      const Integers wanted = batch_first_ ? std::vector{batch_, directions_, hidden_}
                                           : std::vector{directions_, batch_, hidden_};
      if (has(state) && shape(state) != wanted)
        refuse("an initial state does not fit the weights");
    }
    if (steps_ < 1 || batch_ < 1 || hidden_ < 1)
      refuse("an empty sequence, batch or state");
    if (steps_ > kMaxSteps / directions_)
      refuse(fmt::format("{} steps; at most {} are unrolled", steps_, kMaxSteps / directions_));
  }

  void check_options() const {
    if (node_.attributes.has("clip"))
      refuse("clipping is not supported", "attribute 'clip'");
    if (node_.attributes.integer("input_forget", 0) != 0)
      refuse("coupled input and forget gates are not supported", "attribute 'input_forget'");
    for (const char* name : {"activation_alpha", "activation_beta"}) {
      const auto found = node_.attributes.all().find(name);
      const auto* numbers = found == node_.attributes.all().end()
                                ? nullptr
                                : std::get_if<std::vector<double>>(&found->second);
      if (numbers != nullptr && !numbers->empty())
        refuse("parameters of activations are not supported", fmt::format("attribute '{}'", name));
    }
    if (has(7))
      refuse("peephole connections are not supported", "input 7");
    if (!has(4))
      return;
    const auto* list = integers_of(values_.at(node_.inputs[4]).values);
    if (list == nullptr || std::any_of(list->begin(), list->end(),
                                       [&](std::int64_t length) { return length != steps_; }))
      refuse("sequences of different lengths are not supported", "input 4");
  }

  std::vector<std::string> activations(std::int64_t direction) const {
    std::vector<std::string> own{"Sigmoid", "Tanh", "Tanh"};
    if (node_.op_type == ops::GRU)
      own = {"Sigmoid", "Tanh"};
    if (node_.op_type == ops::RNN)
      own = {"Tanh"};
    const auto found = node_.attributes.all().find("activations");
    const auto* given = found == node_.attributes.all().end()
                            ? nullptr
                            : std::get_if<std::vector<std::string>>(&found->second);
    const auto first = static_cast<std::size_t>(direction) * own.size();
    if (given != nullptr && given->size() >= first + own.size())
      std::copy_n(given->begin() + static_cast<std::ptrdiff_t>(first), own.size(), own.begin());
    for (const std::string& name : own) {
      if (std::ranges::find(kActivations, name) == kActivations.end())
        refuse(fmt::format("activation '{}' is not supported", name), "attribute 'activations'");
    }
    return own;
  }

  /// Finds weights in their original gate order, if all of them share that order.
  void find_sources() {
    place_.resize(static_cast<std::size_t>(gates_));
    std::iota(place_.begin(), place_.end(), std::int64_t{0});
    const GateSources sources(model_, values_);
    std::vector<Sources> found(static_cast<std::size_t>(directions_));
    std::optional<Integers> place;
    for (const std::size_t input : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      if (!has(input))
        continue;
      const auto own =
          sources.of(node_.inputs[input], directions_, input == 3 ? 2 : 1, gates_, hidden_);
      if (!own)
        return;
      for (std::size_t d = 0; d < found.size(); ++d) {
        for (const GateSource& source : (*own)[d]) {
          if (place.value_or(source.place) != source.place)
            return;
          place = source.place;
          found[d].push_back(source.parameter);
        }
      }
    }
    if (node_.op_type == ops::GRU && place && place->back() != 2)
      return; // h~ has a separate weight, which must be the last rows
    sources_ = std::move(found);
    place_ = *place;
  }

  std::string named(std::int64_t direction, std::string_view what) const {
    if (directions_ == 1)
      return std::string(what);
    return fmt::format("{}/{}", direction == 0 ? "forward" : "reverse", what);
  }

  /// Slice `direction` of the first axis, without that axis.
  std::string pick(const std::string& tensor, std::int64_t direction, std::string_view what) {
    std::string part = tensor;
    if (directions_ > 1)
      part = write_.add(ops::Slice, named(direction, fmt::format("{}_part", what)),
                        {tensor, write_.integers({direction}), write_.integers({direction + 1}),
                         write_.integers({0})});
    return write_.squeeze(named(direction, what), part, 0);
  }

  std::string initial_state(std::size_t input, std::int64_t direction, const char* what) {
    if (!has(input))
      return write_.zeros(fmt::format("{}_zero", what), {batch_, hidden_},
                          values_.at(node_.inputs[0]).type);
    std::string state = node_.inputs[input];
    if (batch_first_)
      state = write_.transpose(named(direction, fmt::format("{}_by_direction", what)), state,
                               {1, 0, 2});
    return pick(state, direction, what);
  }

  bool resets_late() const {
    return node_.op_type == ops::GRU && node_.attributes.integer("linear_before_reset", 0) != 0;
  }

  /// Sum of both biases. The recurrent bias of h~ is separate if the reset gate applies to it.
  std::string bias(std::int64_t direction, Weights& weights) {
    if (!sources_.empty())
      return bias_of_sources(direction, weights);
    const std::int64_t width = gates_ * hidden_;
    const std::string both = pick(node_.inputs[3], direction, "B");
    if (!resets_late()) {
      const auto parts = write_.split(named(direction, "B_parts"), both, 0, {width, width});
      return write_.add(ops::Add, named(direction, "bias"), parts);
    }
    const auto parts = write_.split(named(direction, "B_parts"), both, 0,
                                    {2 * hidden_, hidden_, 2 * hidden_, hidden_});
    weights.late_bias = parts[3];
    const std::string early =
        write_.add(ops::Add, named(direction, "bias_zr"), {parts[0], parts[2]});
    return write_.concat(named(direction, "bias"), {early, parts[1]}, 0);
  }

  std::string bias_of_sources(std::int64_t direction, Weights& weights) {
    const Sources& own = sources_[static_cast<std::size_t>(direction)];
    if (!resets_late())
      return write_.add(ops::Add, named(direction, "bias"), {own[2], own[3]});
    const Integers sizes{2 * hidden_, hidden_};
    const auto input = write_.split(named(direction, "W_b_parts"), own[2], 0, sizes);
    const auto state = write_.split(named(direction, "R_b_parts"), own[3], 0, sizes);
    weights.late_bias = state[1];
    const std::string early =
        write_.add(ops::Add, named(direction, "bias_zr"), {input[0], state[0]});
    return write_.concat(named(direction, "bias"), {early, input[1]}, 0);
  }

  /// W or R of a direction as a matrix.
  std::string matrix(std::size_t input, std::int64_t direction, std::string_view what) {
    return sources_.empty() ? pick(node_.inputs[input], direction, what)
                            : sources_[static_cast<std::size_t>(direction)][input - 1];
  }

  /// X * W^T + bias for every step, each [B, gates * H].
  std::vector<std::string> project(const std::string& x, std::int64_t direction, Weights& weights) {
    const std::string w = matrix(1, direction, "W");
    std::string all = write_.add(ops::MatMul, named(direction, "X_W"),
                                 {x, write_.transpose(named(direction, "W_T"), w, {1, 0})});
    if (has(3))
      all = write_.add(ops::Add, named(direction, "X_W_b"), {all, bias(direction, weights)});
    const auto parts = write_.split(named(direction, "X_steps"), all, 0,
                                    Integers(static_cast<std::size_t>(steps_), 1));
    std::vector<std::string> steps;
    for (std::size_t t = 0; t < parts.size(); ++t)
      steps.push_back(write_.squeeze(named(direction, fmt::format("X_step_{}", t)), parts[t], 0));
    return steps;
  }

  Track run_direction(const std::string& x, std::int64_t direction) {
    Weights weights;
    weights.activations = activations(direction);
    const std::vector<std::string> inputs = project(x, direction, weights);
    const std::string r = matrix(2, direction, "R");
    weights.recurrent = write_.transpose(named(direction, "R_T"), r, {1, 0});
    if (node_.op_type == ops::GRU && !resets_late()) {
      const auto parts =
          write_.split(named(direction, "R_parts"), weights.recurrent, 1, {2 * hidden_, hidden_});
      weights.recurrent = parts[0];
      weights.recurrent_late = parts[1];
    }
    Track track;
    track.states.resize(inputs.size());
    std::string h = initial_state(5, direction, "h0");
    std::string c = node_.op_type == ops::LSTM ? initial_state(6, direction, "c0") : "";
    const bool reversed = backwards_ || direction == 1;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t t = reversed ? inputs.size() - 1 - i : i;
      prefix_ = named(direction, fmt::format("step_{}", t));
      if (node_.op_type == ops::LSTM)
        lstm_step(inputs[t], weights, h, c);
      else if (node_.op_type == ops::GRU)
        gru_step(inputs[t], weights, h);
      else
        h = step(
            "h", weights.activations[0],
            {step("sum", ops::Add, {inputs[t], step("h_R", ops::MatMul, {h, weights.recurrent})})});
      track.states[t] = h;
    }
    track.last = h;
    track.last_cell = c;
    return track;
  }

  std::string step(std::string_view name, OpType op_type, std::vector<std::string> inputs) {
    return write_.add(op_type, fmt::format("{}/{}", prefix_, name), std::move(inputs));
  }
  std::vector<std::string> step_parts(std::string_view name, const std::string& tensor,
                                      const Integers& sizes) {
    return write_.split(fmt::format("{}/{}", prefix_, name), tensor, 1, sizes);
  }

  /// Gates of an LSTM after their activations, in ONNX's order (i o f c). Neighbouring gates share
  /// an activation node.
  std::array<std::string, 4> lstm_gates(const std::string& sum, const Weights& weights) {
    static constexpr std::string_view kLetters = "iofg";
    std::string order(4, ' '); // gate of each block of rows
    for (std::size_t gate = 0; gate < 4; ++gate)
      order[static_cast<std::size_t>(place_[gate])] = kLetters[gate];
    std::vector<std::string> runs;
    for (const char gate : order) {
      const bool joins = !runs.empty() && gate != 'g' && runs.back() != "g";
      if (joins)
        runs.back().push_back(gate);
      else
        runs.emplace_back(1, gate);
    }
    Integers sizes;
    for (const std::string& run : runs)
      sizes.push_back(static_cast<std::int64_t>(run.size()) * hidden_);
    const auto parts = step_parts("parts", sum, sizes);
    std::array<std::string, 4> gates;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::string& run = runs[i];
      const std::string open = step(run, weights.activations[run == "g" ? 1 : 0], {parts[i]});
      std::vector<std::string> single{open};
      if (run.size() > 1)
        single = step_parts(run + "_gates", open, std::vector(run.size(), hidden_));
      for (std::size_t k = 0; k < run.size(); ++k)
        gates[kLetters.find(run[k])] = single[k];
    }
    return gates;
  }

  /// c = f * c + i * g; h = o * tanh(c).
  void lstm_step(const std::string& x, const Weights& weights, std::string& h, std::string& c) {
    const std::string sum =
        step("sum", ops::Add, {x, step("h_R", ops::MatMul, {h, weights.recurrent})});
    const auto [input, output, forget, candidate] = lstm_gates(sum, weights);
    c = step("c", ops::Add,
             {step("f_c", ops::Mul, {forget, c}), step("i_g", ops::Mul, {input, candidate})});
    h = step("h", ops::Mul, {output, step("act_c", weights.activations[2], {c})});
  }

  /// h = (1 - z) * h~ + z * h, written h~ + z * (h - h~).
  void gru_step(const std::string& x, const Weights& weights, std::string& h) {
    const auto from_x = step_parts("x_parts", x, {2 * hidden_, hidden_});
    const std::string product = step("h_R", ops::MatMul, {h, weights.recurrent});
    std::vector<std::string> from_h{product};
    if (resets_late())
      from_h = step_parts("h_parts", product, {2 * hidden_, hidden_});
    const std::string open =
        step("zr", weights.activations[0], {step("zr_sum", ops::Add, {from_x[0], from_h[0]})});
    const auto by_row = step_parts("gates", open, {hidden_, hidden_});
    const std::string& update = by_row[static_cast<std::size_t>(place_[0])];
    const std::string& reset = by_row[static_cast<std::size_t>(place_[1])];
    std::string inner;
    if (resets_late()) {
      inner = from_h[1];
      if (!weights.late_bias.empty())
        inner = step("h_R_b", ops::Add, {inner, weights.late_bias});
      inner = step("r_h", ops::Mul, {reset, inner});
    } else {
      inner =
          step("r_h_R", ops::MatMul, {step("r_h", ops::Mul, {reset, h}), weights.recurrent_late});
    }
    const std::string candidate =
        step("n", weights.activations[1], {step("n_sum", ops::Add, {from_x[1], inner})});
    h = step("h", ops::Add,
             {candidate, step("z_d", ops::Mul, {update, step("d", ops::Sub, {h, candidate})})});
  }

  bool wants(std::size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }

  void write_outputs(const std::vector<Track>& tracks) {
    if (wants(0))
      write_sequence(tracks);
    for (const std::size_t output : {std::size_t{1}, std::size_t{2}}) {
      if (!wants(output))
        continue;
      const char* what = output == 1 ? "Y_h" : "Y_c";
      std::vector<std::string> parts;
      for (std::size_t d = 0; d < tracks.size(); ++d) {
        parts.push_back(write_.unsqueeze(named(static_cast<std::int64_t>(d), what),
                                         output == 1 ? tracks[d].last : tracks[d].last_cell, {0}));
      }
      const std::string result = node_.outputs[output];
      const std::string joined =
          write_.concat(fmt::format("{}_joined", what), parts, 0, batch_first_ ? "" : result);
      if (batch_first_)
        write_.transpose(fmt::format("{}_by_batch", what), joined, {1, 0, 2}, result);
    }
  }

  /// Adds the output Y: [T, D, B, H], or [B, T, D, H] if the batch comes first.
  void write_sequence(const std::vector<Track>& tracks) {
    std::vector<std::string> sides;
    const bool one = tracks.size() == 1;
    for (std::size_t d = 0; d < tracks.size(); ++d) {
      std::vector<std::string> parts;
      for (std::size_t t = 0; t < tracks[d].states.size(); ++t) {
        parts.push_back(
            write_.unsqueeze(named(static_cast<std::int64_t>(d), fmt::format("Y_{}", t)),
                             tracks[d].states[t], {0, 1}));
      }
      sides.push_back(write_.concat(named(static_cast<std::int64_t>(d), "Y"), parts, 0,
                                    one && !batch_first_ ? node_.outputs[0] : ""));
    }
    std::string joined = sides[0];
    if (!one)
      joined = write_.concat("Y_joined", sides, 1, batch_first_ ? "" : node_.outputs[0]);
    if (batch_first_)
      write_.transpose("Y_by_batch", joined, {2, 0, 1, 3}, node_.outputs[0]);
  }

  using Sources = std::vector<std::string>; ///< W, R, and the biases of each if present

  const Model& model_;
  const Node& node_;
  Values& values_;
  NodeWriter write_;
  std::string prefix_;
  std::int64_t gates_ = 1;
  std::int64_t directions_ = 1;
  std::int64_t steps_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t hidden_ = 0;
  bool batch_first_ = false;
  bool backwards_ = false;
  std::vector<Sources> sources_; ///< by direction; empty if the node's inputs are used
  Integers place_;               ///< block of rows of each gate, in ONNX's order
};

} // namespace

std::vector<Node> unroll_recurrent(const Model& model, const Node& node, Values& values) {
  return Unrolling(model, node, values).run();
}

} // namespace monet::onnx_file
