// Parts of core files that other readers need as well.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/core.hpp"

#include <optional>
#include <vector>

namespace monet {

/// A core file's root. Problems are collected; an off-chip core may have an array of size 0.
Core parse_core_node(const YamlNode& root, ProblemList& problems, bool offchip);

/// {D1: ["K, 32"], D2: ["C, 32"]}, one list per array dimension; absent = empty.
std::vector<std::vector<Unrolling>>
parse_dataflow(const YamlNode& node, const std::vector<ArrayDim>& array, ProblemList& problems);

} // namespace monet
