// Designs of a space modelled in full, as `monet run` would.
#pragma once

#include "console.hpp"

#include "monet/explore/space.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet::cli {

/// Those asked for, and the best of each run in each objective of its fronts; in order of id.
std::vector<DesignId> designs_to_report(const Space& space,
                                        const nlohmann::ordered_json& exploration,
                                        const std::vector<DesignId>& asked);

/// InputError where an id is beyond the space or a constraint excludes it.
void check_designs(const Space& space, const std::vector<DesignId>& asked);

/// Writes the design's hardware files, result.json, report.html and trace.json into
/// FOLDER/designs/<id>. InfeasibleError where it cannot run.
void write_design(const Space& space, DesignId id, const std::string& folder, Session& session);

} // namespace monet::cli
