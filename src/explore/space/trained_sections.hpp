// `workload:` and `training:` of a space where designs differ in them, and `accuracy:`, the short
// training of every design's arithmetic.
#pragma once

#include "explore/space/template.hpp"

#include <string>
#include <vector>

namespace monet {

/// A space file whose parameters and `let:` have been read.
struct SpaceFile {
  YamlMap& map;
  Space& space;
  Space::Template& made_of;
  const std::vector<std::string>& names; ///< slots of expressions
  ProblemList& problems;
};

void read_trained_sections(SpaceFile file);

/// Every workload and training that designs may choose, read once: InputError with all that is
/// wrong with them. Gives the space's workload the settings of its first design. Returns the files
/// that they read.
std::vector<std::string> check_trained_sections(Space& space, const Space::Template& made_of);

} // namespace monet
