// Files of hardware that a space names by paths with expressions: every one that some design may
// choose is read with the space.
#pragma once

#include "explore/space/template.hpp"

#include <string>
#include <vector>

namespace monet {

/// A space that is being read: parameters and `let:` are there.
struct HalfReadSpace {
  const Space& space;
  const Space::Template& made_of;
  const std::vector<std::string>& names; ///< slots of expressions
};

/// The core files that a path may name, with expressions of their own; `files` gets their paths.
void read_core_files(const HalfReadSpace& of, Space::Template::CoreTemplate& core,
                     const SourceLoc& where, std::vector<std::string>& files,
                     ProblemList& problems);
/// The system files that `chip:` may name, and the core files that they name.
void read_systems(const Space& space, Space::Template& made_of, const SourceLoc& where,
                  std::vector<std::string>& files, ProblemList& problems);

} // namespace monet
