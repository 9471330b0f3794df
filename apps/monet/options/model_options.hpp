// Options that choose the core cost model: MONET's or ZigZag's, and single choices between them.
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <string>
#include <vector>

namespace monet::cli {

struct Command;

struct ModelArguments {
  std::string model = "monet";
  std::vector<std::string> choices; ///< "name=on" or "name=off"; they override the model
  std::string allocation = "uneven";
  int generated = CoreCostOptions{}.generated_unrollings;
  bool mixed = false;
  bool data_locality = false;
  int unrollings = CoreCostOptions::kUsualUnrollings;

  void add_to(Command& command);
  bool is_zigzag() const { return model != "monet"; }
  /// Sets the model of `options`. Throws UsageError for a choice that is malformed or unknown.
  void apply(CoreCostOptions& options) const;
};

/// Text of --help with one line per choice.
std::string describe_choices();

} // namespace monet::cli
