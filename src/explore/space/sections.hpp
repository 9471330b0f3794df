// Readers of the sections of a space file that name other files: hardware, trainings, clusters.
#pragma once

#include "explore/space/template.hpp"

#include <functional>
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

/// Calls `use` with every value that a path expression has for some design; a value may occur
/// several times. Adds problems: too many files, and InputErrors of expressions and of `use`, which
/// end the loop.
void each_path(const SpaceFile& file, const YamlTemplate& path, const SourceLoc& where,
               const std::function<void(const std::string& text)>& use);
void add_once(const std::string& path, std::vector<std::string>& files);

/// Reads the core files that a path may name, which may contain expressions. Adds their paths to
/// `files`.
void read_core_files(const SpaceFile& file, Space::Template::CoreTemplate& core,
                     const SourceLoc& where, std::vector<std::string>& files);
/// Reads the system files that `chip:` may name and the core files named in them. Adds their paths
/// to `files`.
void read_systems(const SpaceFile& file, const SourceLoc& where, std::vector<std::string>& files);

Space::Template::VariedSection varied_section(const SpaceFile& file, const YamlNode& node);

/// Reads `workload:` and `training:`, which may differ between designs, and `accuracy:`, the short
/// training of each design's arithmetic.
void read_trained_sections(const SpaceFile& file);
/// Checks every workload and training that designs may choose; throws InputError with all problems.
/// Sets the space's workload to that of its first design. Returns the files read.
std::vector<std::string> check_trained_sections(Space& space, const Space::Template& made_of);

/// Reads `cluster:` and `parallel:`, and the cluster files that `cluster:` may name; the space's
/// runs and metrics become those of clusters. To be called after `parameters:` and `let:`.
void read_cluster_sections(const SpaceFile& file);
/// Checks the first design, and sets the space's default fronts if `fronts` is null. Returns the
/// files that designs may choose. Throws InputError with all problems.
std::vector<std::string> check_cluster_sections(Space& space, Space::Template& made_of,
                                                const YamlNode* fronts);

} // namespace monet
