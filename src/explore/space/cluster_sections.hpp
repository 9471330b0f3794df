// `cluster:` and `parallel:` of a space file.
#pragma once

#include "explore/space/template.hpp"
#include "explore/space/trained_sections.hpp"

#include <string>
#include <vector>

namespace monet {

/// Reads both, and the cluster files that `cluster:` may name; the space's runs and metrics become
/// those of clusters. To be called after `parameters:` and `let:`.
void read_cluster_sections(SpaceFile file);

/// Reads the first design, and gives the space its fronts where the file has none. Returns the
/// files that designs may choose. InputError with what is wrong. `fronts`: null where there are
/// none.
std::vector<std::string> check_cluster_sections(Space& space, Space::Template& made_of,
                                                const YamlNode* fronts);

} // namespace monet
