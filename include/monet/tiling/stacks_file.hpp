// Reader and writer of stack files, in which a user selects the operators that run fused:
//
//   stacks:
//     - [/conv1/Conv, /relu1/Relu]   # names of nodes
//     - [2, 3, 4]                    # or positions in the network file's list of nodes, from 0
//
// The file may also be the list of lists alone. A stack may have slices. The first cut is the
// outermost, and loops of the other operators follow it; an empty list keeps operators whole.
//
//   stacks:
//     - operators: [/conv1/Conv, /relu1/Relu]
//       slices: [{operator: /relu1/Relu, loop: H, count: 8}]
//       halo: recomputed  # default: the option --halo
//       turns: 4          # two of its slices, then two of each other stack that takes turns
//   idle_cores: [2, 3]    # run nothing that another core can run
// Example:
//   TilingOptions fused_as_in(const std::string& path, const TrainingGraph& step,
//                             const Graph& network, const Chip& chip) {
//     const StacksFile file = read_stacks(path);
//     FusionPlan plan = resolve_stacks(file, step.graph, network);
//     plan.idle = idle_cores_of(file, chip);
//     return TilingOptions().with(plan);
//   }
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

/// A reference to an operator in a stack file, by name or by position.
struct StackMember {
  std::string name;                  ///< empty if given by position
  std::optional<std::int64_t> place; ///< position among the nodes of the network
  SourceLoc where;
};

/// Content of a stack file.
struct StacksFile {
  /// Slices of a stack.
  struct Slices {
    /// A loop to cut evenly into `count` parts.
    struct Cut {
      StackMember of;
      std::string loop;
      std::int64_t count = 1;
      SourceLoc where;
    };
    std::optional<std::vector<Cut>> cuts; ///< nullopt: make_tiles() selects
    std::optional<Halo> halo;             ///< only with cuts
    /// Number of turns, only with cuts; all stacks with more than one must have the same number.
    std::int64_t turns = 1;
    SourceLoc turns_where;
  };
  std::string origin;
  std::vector<std::vector<StackMember>> stacks;
  std::vector<Slices> slices; ///< per stack
  /// A core that runs nothing that another core can run.
  struct IdleCore {
    std::int64_t core = 0; ///< id in the system file
    SourceLoc where;
  };
  std::vector<IdleCore> idle_cores;
};

/// Reads a stack file. Throws one InputError with all problems found.
StacksFile read_stacks(const std::string& path);
/// Parses the text of a stack file; `origin` names it in messages. Throws one InputError with all
/// problems found.
StacksFile parse_stacks(std::string_view text, const std::string& origin);

/// Resolves a stack file to the operator ids of `step`, each stack in the order of operators. Empty
/// stacks are omitted. make_tiles() selects the slices of a stack if they refer to an operator that
/// `step` lacks. Positions refer to `network`. A name that `step` lacks is skipped if `network` or
/// one of `others` has it (a folded view, or a gradient that inference does not need). Throws one
/// InputError with all unknown names, positions outside the network, operators named twice, and
/// loops that an operator lacks or that cannot be cut.
FusionPlan resolve_stacks(const StacksFile& file, const Graph& step, const Graph& network,
                          std::span<const Graph* const> others = {});

/// Cores of the chip that the file leaves idle, as FusionPlan::idle; empty if it names none. Throws
/// one InputError with every id that is not a compute core of the chip.
std::vector<bool> idle_cores_of(const StacksFile& file, const Chip& chip);

/// Text of a stack file for a plan of `step`, which read_stacks() can read.
std::string stacks_yaml(const FusionPlan& plan, const Graph& step);

} // namespace monet
