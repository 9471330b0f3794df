// Sections of a space file that name other files: hardware, what is trained, clusters.
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

/// Calls `use` with what a path may come to, of some designs twice. Problems are collected: too
/// many files, and the InputErrors of expressions and of `use`, which end it.
void each_path(const SpaceFile& file, const YamlTemplate& path, const SourceLoc& where,
               const std::function<void(const std::string& text)>& use);
void add_once(const std::string& path, std::vector<std::string>& files);

/// The core files that a path may name, with expressions of their own; `files` gets their paths.
void read_core_files(const SpaceFile& file, Space::Template::CoreTemplate& core,
                     const SourceLoc& where, std::vector<std::string>& files);
/// The system files that `chip:` may name, and the core files that they name.
void read_systems(const SpaceFile& file, const SourceLoc& where, std::vector<std::string>& files);

Space::Template::VariedSection varied_section(const SpaceFile& file, const YamlNode& node);

/// `workload:` and `training:` of a space where designs differ in them, and `accuracy:`, the short
/// training of every design's arithmetic.
void read_trained_sections(const SpaceFile& file);
/// Every workload and training that designs may choose, read once: InputError with all that is
/// wrong with them. Gives the space's workload the settings of its first design. Returns the files
/// that they read.
std::vector<std::string> check_trained_sections(Space& space, const Space::Template& made_of);

/// Reads `cluster:` and `parallel:`, and the cluster files that `cluster:` may name; the space's
/// runs and metrics become those of clusters. To be called after `parameters:` and `let:`.
void read_cluster_sections(const SpaceFile& file);
/// Reads the first design, and gives the space its fronts where the file has none. Returns the
/// files that designs may choose. InputError with what is wrong. `fronts`: null where there are
/// none.
std::vector<std::string> check_cluster_sections(Space& space, Space::Template& made_of,
                                                const YamlNode* fronts);

} // namespace monet
