// Which operators run fused, as a user says it:
//
//   stacks:
//     - [/conv1/Conv, /relu1/Relu]   # names of nodes
//     - [2, 3, 4]                    # or places in the network file's order of nodes, from 0
//
// or the list of lists alone.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

struct StackMember {
  std::string name;                  ///< empty when given by place
  std::optional<std::int64_t> place; ///< among the nodes of the network
  SourceLoc where;
};

struct StacksFile {
  std::string origin;
  std::vector<std::vector<StackMember>> stacks;
};

/// Throws one InputError with every problem found.
StacksFile read_stacks(const std::string& path);
/// The same from text; `origin` names it in messages.
StacksFile parse_stacks(std::string_view text, const std::string& origin);

/// The stacks of `step` in its operators' ids, each in their order; empty stacks are left out.
/// Places count through `network`. A name that `step` lacks is skipped when `network` or one of
/// `others` has it (a view that was folded, a gradient that inference has no use for). One
/// InputError with every name that nobody has, every place outside the network and every operator
/// that is named twice.
std::vector<std::vector<OpId>> resolve_stacks(const StacksFile& file, const Graph& step,
                                              const Graph& network,
                                              std::span<const Graph* const> others = {});

} // namespace monet
