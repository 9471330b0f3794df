// What a fuzzing program runs on its inputs. MONET_FUZZ_TARGET names one of the program's targets.
#pragma once

#include "structured/mutator.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace monet::fuzz {

struct Target {
  std::string_view name;
  Format format = Format::bytes; ///< which mutations its inputs take
  /// InputError, InfeasibleError and Stopped are answers; whatever else it throws ends the run.
  void (*run)(std::string_view input) = nullptr;
};

/// Of the program that is linked.
std::span<const Target> targets();

/// The options that a target takes for a network: from its model_version, which mutations change.
/// From 0 to 63; 0 for what is no model.
std::uint64_t variation(std::string_view model);

} // namespace monet::fuzz
