// Writes what `monet backward` found as JSON (docs/backward.schema.json); backward_table.cpp prints
// tables from it.
#include "base/shared/checked.hpp"
#include "report/shared/backward_result.hpp"
#include "report/shared/text.hpp"
#include "report/shared/written.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

std::int64_t whole_bytes(std::int64_t bits) {
  return (bits + 7) / 8;
}

/// Cost of one technique summed over layers. Bytes are rounded up per layer, so that layers add up
/// to the total.
struct TechniqueSum {
  std::int64_t latency = 0;
  std::int64_t bytes = 0;
  std::int64_t update_bytes = 0; ///< bytes of a separate update that follows
  BackwardTraffic traffic;

  void add(const PartitionedCost& cost, const GemmPair& pair, const BackwardOptions& options) {
    latency = checked_add(latency, cost.latency_cycles);
    bytes = checked_add(bytes, whole_bytes(cost.traffic.bits()));
    if (cost.part.technique != Technique::joint_update)
      update_bytes = checked_add(update_bytes, whole_bytes(update_bits(pair, options)));
    traffic += cost.traffic;
  }
};

Json traffic_json(const BackwardTraffic& traffic) {
  return {{"dy_read", whole_bytes(traffic.dy_read)},
          {"w_read", whole_bytes(traffic.w_read)},
          {"x_read", whole_bytes(traffic.x_read)},
          {"dx_read", whole_bytes(traffic.dx_read)},
          {"dx_write", whole_bytes(traffic.dx_write)},
          {"dw_read", whole_bytes(traffic.dw_read)},
          {"dw_write", whole_bytes(traffic.dw_write)},
          {"update_read", whole_bytes(traffic.update_read)},
          {"update_write", whole_bytes(traffic.update_write)}};
}

/// Relative reduction of `value` against `over`; null if `over` is missing or 0.
Json gain_json(std::int64_t value, const std::optional<std::int64_t>& over) {
  if (!over || *over == 0)
    return nullptr;
  return 1 - static_cast<double>(value) / static_cast<double>(*over);
}

Json gap_over(std::int64_t value, std::int64_t bound) {
  return bound > 0 ? Json(static_cast<double>(value) / static_cast<double>(bound) - 1)
                   : Json(nullptr);
}

/// Sums of all techniques over a set of layers, with their gains and the lower bound.
class TechniqueSums {
public:
  explicit TechniqueSums(const BackwardPlan& plan) : plan_(plan), sums_(plan.techniques.size()) {}

  void add(const BackwardLayer& layer) {
    for (std::size_t t = 0; t < sums_.size(); ++t)
      sums_[t].add(layer.costs.at(t), layer.pair, plan_.options);
    bound_bytes_ = checked_add(bound_bytes_, layer.bound.dram_bytes());
    bound_cycles_ = checked_add(bound_cycles_, layer.bound.latency_cycles);
  }

  Json techniques() const {
    Json json = Json::object();
    for (std::size_t t = 0; t < sums_.size(); ++t)
      json[std::string(name_of(plan_.techniques[t]))] = technique(t);
    return json;
  }

  void add_to(Json& json) const {
    json["techniques"] = techniques();
    json["bound_latency_cycles"] = bound_cycles_;
    json["bound_dram_bytes"] = bound_bytes_;
  }

private:
  std::optional<std::int64_t> latency_of(Technique technique) const {
    const auto found = std::ranges::find(plan_.techniques, technique);
    if (found == plan_.techniques.end())
      return std::nullopt;
    return sums_[static_cast<std::size_t>(found - plan_.techniques.begin())].latency;
  }

  Json technique(std::size_t t) const {
    const TechniqueSum& sum = sums_[t];
    // joint-update also moves the bytes of the update, which the bound does not include.
    const bool bounded = plan_.techniques[t] != Technique::joint_update;
    return {{"latency_cycles", sum.latency},
            {"dram_bytes", sum.bytes},
            {"separate_update_bytes", sum.update_bytes},
            {"traffic_bytes", traffic_json(sum.traffic)},
            {"gain", gain_json(sum.latency, latency_of(Technique::sequential))},
            {"gain_over_best_sequential",
             gain_json(sum.latency, latency_of(Technique::best_sequential))},
            {"latency_gap", bounded ? gap_over(sum.latency, bound_cycles_) : Json(nullptr)},
            {"dram_gap", bounded ? gap_over(sum.bytes, bound_bytes_) : Json(nullptr)}};
  }

  const BackwardPlan& plan_;
  std::vector<TechniqueSum> sums_;
  std::int64_t bound_bytes_ = 0;
  std::int64_t bound_cycles_ = 0;
};

Json backward_layer_json(const BackwardLayer& layer, const BackwardPlan& plan) {
  const GemmPair& pair = layer.pair;
  const std::int64_t macs =
      checked_multiply(checked_multiply(pair.m, pair.k), checked_multiply(pair.n, pair.repeats));
  Json json{{"name", valid_utf8(pair.name)},
            {"op_type", "ProductGrad"},
            {"phase", "backward"},
            {"m", pair.m},
            {"k", pair.k},
            {"n", pair.n},
            {"repeats", pair.repeats},
            {"has_dx", pair.has_dx},
            {"input_elements",
             pair.raw_elements > 0 ? pair.raw_elements : checked_multiply(pair.m, pair.k)},
            {"macs", {{"backward_input", pair.has_dx ? macs : 0}, {"backward_weight", macs}}}};
  TechniqueSums sums(plan);
  sums.add(layer);
  sums.add_to(json);
  for (std::size_t t = 0; t < plan.techniques.size(); ++t) {
    Json& technique = json["techniques"][std::string(name_of(plan.techniques[t]))];
    const PartitionedCost& cost = layer.costs.at(t);
    technique["variant"] = cost.part.variant;
    technique["partition"] = name_of(cost.scheme);
    technique["parts"] = cost.parts;
    technique["sum_cycles"] = cost.sum_cycles;
  }
  return json;
}

Json machine_json(const NpuMachine& machine) {
  return {{"name", valid_utf8(machine.name)},
          {"cores", machine.cores},
          {"rows", machine.rows},
          {"columns", machine.columns},
          {"buffer_bytes", machine.buffer_bits / 8},
          {"double_buffered", machine.double_buffered},
          {"bandwidth_bits_per_cycle", static_cast<double>(machine.bandwidth_bits) /
                                           static_cast<double>(machine.bandwidth_cycles)},
          {"frequency_hz", machine.frequency_hz > 0 ? Json(machine.frequency_hz) : Json(nullptr)}};
}

} // namespace

Json backward_json(const BackwardResult& result, const Provenance& provenance) {
  TechniqueSums sums(*result.plan);
  Json layers = Json::array();
  std::int64_t input_macs = 0;
  std::int64_t weight_macs = 0;
  for (const BackwardLayer& layer : *result.layers) {
    sums.add(layer);
    layers.push_back(backward_layer_json(layer, *result.plan));
    const Json& macs = layers.back().at("macs");
    input_macs = checked_add(input_macs, macs.at("backward_input").get<std::int64_t>());
    weight_macs = checked_add(weight_macs, macs.at("backward_weight").get<std::int64_t>());
  }
  Json json{{"schema_version", 1},
            {"kind", "backward"},
            {"name", valid_utf8(result.network->name)},
            {"machine", machine_json(result.plan->machine)},
            {"macs", {{"backward_input", input_macs}, {"backward_weight", weight_macs}}}};
  sums.add_to(json);
  json["layers"] = std::move(layers);
  Json skipped = Json::array();
  for (const SkippedProduct& one : result.network->skipped) {
    skipped.push_back(
        {{"name", valid_utf8(one.name)}, {"op_type", valid_utf8(one.op_type)}, {"why", one.why}});
  }
  json["skipped"] = std::move(skipped);
  json["provenance"] = provenance_json(provenance);
  return written(ResultSchema::backward, std::move(json));
}

} // namespace monet
