// A step small enough to add up by hand: one product, its weight gradient and its update, on two
// cores and a DRAM.
#pragma once

#include "monet/report/result.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace monet::test {

struct HandMade {
  Chip chip;
  TrainingGraph step;
  TileGraph tiles;
  Timeline timeline;

  StepResult result() const { return {&step, &tiles, &timeline}; }
  /// result.json of it, with itself as its inference.
  nlohmann::ordered_json json(const std::string& name = "by hand") const;
};

/// `layer` names the product; its other names follow from it.
HandMade hand_made_step(const std::string& layer = "fc");

} // namespace monet::test
