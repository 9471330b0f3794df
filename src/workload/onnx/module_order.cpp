// Separates parameters from buffers by their order in a file of PyTorch; kinds.cpp calls it last.
#include "workload/onnx/model.hpp"

#include <span>

namespace monet::onnx_file {

namespace {

using Strength = BufferSign::Strength;

/// Cost that no sum of other signs outweighs.
constexpr int kCertain = 100;

/// Module part of a name: "encoder.layer.0.weight" -> "encoder.layer.0"; empty without dots.
std::string_view module_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

/// Whether an exporter, not a module, created the name.
bool is_made_by_exporter(std::string_view name) {
  return name.empty() || name.find("::") != name.npos || name.find('/') != name.npos;
}

/// Cost of classifying the candidate as a parameter: higher if less likely.
int cost_as_parameter(const KindCandidate& candidate) {
  if (candidate.kind == TensorKind::parameter)
    return 0;
  switch (candidate.sign.strength) {
  case Strength::weak:
    return 2;
  case Strength::strong:
    return 4;
  default:
    return kCertain;
  }
}

/// Cost of classifying the candidate as a buffer. Buffers of random numbers are rarer than
/// parameters with structured initial values.
int cost_as_buffer(const KindCandidate& candidate) {
  if (candidate.kind != TensorKind::parameter)
    return 0;
  if (candidate.is_settled)
    return kCertain;
  if (candidate.is_layer)
    return 6;
  return candidate.elements == 1 ? 1 : 3;
}

/// Likeliest number of parameters at the front of a module, in the file's order; the smallest in
/// case of ties.
std::size_t count_parameters(std::span<KindCandidate* const> module) {
  int cost = 0; // with the first `i` as parameters, the others as buffers
  for (const KindCandidate* candidate : module)
    cost += cost_as_buffer(*candidate);
  int lowest = cost;
  std::size_t best = 0;
  for (std::size_t i = 0; i < module.size(); ++i) {
    cost += cost_as_parameter(*module[i]) - cost_as_buffer(*module[i]);
    if (cost < lowest) {
      lowest = cost;
      best = i + 1;
    }
  }
  return best;
}

void decide_module(std::span<KindCandidate* const> module) {
  const std::size_t parameters = count_parameters(module);
  for (std::size_t i = 0; i < module.size(); ++i) {
    KindCandidate& candidate = *module[i];
    const bool is_guess =
        candidate.sign.strength == Strength::weak || candidate.sign.strength == Strength::strong;
    if (i < parameters && candidate.kind == TensorKind::buffer && is_guess)
      candidate.kind = TensorKind::parameter;
    if (i >= parameters && candidate.kind == TensorKind::parameter && candidate.is_floating &&
        !candidate.is_settled) {
      candidate.kind = TensorKind::buffer;
      candidate.sign = {"its place behind a buffer of its module", Strength::strong};
    }
  }
}

} // namespace

void apply_module_order(std::vector<KindCandidate>& candidates) {
  std::vector<KindCandidate*> module;
  for (KindCandidate& candidate : candidates) {
    if (is_made_by_exporter(candidate.name) || !candidate.has_place)
      continue;
    if (!module.empty() && module_of(module.front()->name) != module_of(candidate.name)) {
      decide_module(module);
      module.clear();
    }
    module.push_back(&candidate);
  }
  decide_module(module);
}

} // namespace monet::onnx_file
