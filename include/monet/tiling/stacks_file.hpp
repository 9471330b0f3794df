// Which operators run fused, as a user says it:
//
//   stacks:
//     - [/conv1/Conv, /relu1/Relu]   # names of nodes
//     - [2, 3, 4]                    # or places in the network file's order of nodes, from 0
//
// or the list of lists alone. A stack may say its slices: the first cut outermost, loops of the
// other operators follow; none at all keeps operators whole.
//
//   stacks:
//     - operators: [/conv1/Conv, /relu1/Relu]
//       slices: [{operator: /relu1/Relu, loop: H, count: 8}]
//       halo: recomputed  # else as --halo says
//       turns: 4          # two of its slices, then two of each other stack that takes turns
//   idle_cores: [2, 3]    # run nothing that another core may run
#pragma once

#include "monet/base/errors.hpp"
#include "monet/tiling/tiling.hpp"

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
  /// What a stack says beside its members.
  struct Slices {
    struct Cut {
      StackMember of;
      std::string loop;
      std::int64_t count = 1;
      SourceLoc where;
    };
    std::optional<std::vector<Cut>> cuts; ///< none: the tool's choice
    std::optional<Halo> halo;             ///< only beside cuts
    std::int64_t turns = 1;               ///< likewise; all stacks with more than one have as many
    SourceLoc turns_where;
  };
  std::string origin;
  std::vector<std::vector<StackMember>> stacks;
  std::vector<Slices> slices; ///< per stack
  struct IdleCore {
    std::int64_t core = 0; ///< its id in the system file
    SourceLoc where;
  };
  std::vector<IdleCore> idle_cores;
};

/// Throws one InputError with every problem found.
StacksFile read_stacks(const std::string& path);
/// The same from text; `origin` names it in messages.
StacksFile parse_stacks(std::string_view text, const std::string& origin);

/// The stacks of `step` in its operators' ids, each in their order; empty stacks are left out, and
/// slices of an operator that `step` lacks are the tool's choice.
/// Places count through `network`. A name that `step` lacks is skipped when `network` or one of
/// `others` has it (a view that was folded, a gradient that inference has no use for). One
/// InputError with every name that nobody has, every place outside the network and every operator
/// that is named twice, and every loop that an operator lacks or that may not be cut.
FusionPlan resolve_stacks(const StacksFile& file, const Graph& step, const Graph& network,
                          std::span<const Graph* const> others = {});

/// The cores of the chip that the file leaves idle, as FusionPlan::idle; empty where it names none.
/// One InputError with every id that no compute core of the chip has.
std::vector<bool> idle_cores_of(const StacksFile& file, const Chip& chip);

/// A plan for `step` as a file that read_stacks() reads.
std::string stacks_yaml(const FusionPlan& plan, const Graph& step);

} // namespace monet
