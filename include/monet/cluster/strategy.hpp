// Parallel strategies: the partition of a training step over the devices of a cluster. The table in
// src/cluster/strategy/axis_roles.cpp has a row for each role of an axis, with everything that
// distinguishes it; other code reads the columns.
// Example:
//   bool is_possible(std::int64_t devices) {
//     ParallelStrategy strategy;
//     strategy.axes = {{AxisRole::tensor, 8}, {AxisRole::data, devices / 8}};
//     strategy.global_batch = devices / 2;
//     return find_misfits(strategy, devices).empty();
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/cluster/partition.hpp"
#include "monet/cluster/pipeline.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

struct YamlNode;

/// Role of an axis, in the order of the table.
enum class AxisRole : std::uint8_t {
  data,           ///< ranks with different samples
  tensor,         ///< ranks that share products with weights
  pipeline,       ///< stages
  virtual_stages, ///< parts of the model per stage
  sequence,       ///< tokens are sharded over tensor ranks between their shared products
  context,        ///< ranks that share the tokens of a sample
  expert,         ///< data ranks that share experts; divides `data`
  zero,           ///< 1 optimiser states, 2 and gradients, 3 and parameters
};
inline constexpr std::size_t kAxisRoles = 8;
inline constexpr std::int64_t kMaxDegree = std::int64_t{1} << 30;

/// Meaning of the degree of an axis.
enum class AxisForm : std::uint8_t {
  ranks,  ///< parts, at least 1
  toggle, ///< 0 or 1: whether the ranks of another axis also divide something else
  stage,  ///< 0 to `maximum`: how much is divided
};

/// Quantity that an axis divides among its ranks.
enum class Divided : std::uint8_t { samples, heads, layers, tokens, experts, states };

/// The weights of which all ranks along an axis hold copies. The ranks add up the gradients of
/// copies, and ZeRO shards copies.
enum class WeightCopies : std::uint8_t { none, all_but_experts, all };

/// The collectives along an axis that exchange parameters or gradients, which may overlap with
/// passes. The other collectives exchange activations, and the passes wait for them.
enum class OverlappingCollectives : std::uint8_t { none, of_weights, all_but_all_to_all, all };

/// The networks whose strategies have degrees other than 1 if a space lists none.
enum class SearchedFor : std::uint8_t { all, transformers, experts };

/// A row of the table of roles.
struct AxisRoleRow {
  AxisRole role = AxisRole::data;
  std::string_view key;    ///< in files, results and messages, and the name of the mesh axis
  std::string_view letter; ///< in the short form of a strategy
  AxisForm form = AxisForm::ranks;
  std::int64_t maximum = kMaxDegree;
  Divided divides = Divided::samples;
  /// The axis whose ranks this one groups (form `ranks`) or uses (form `toggle`).
  std::optional<AxisRole> within;
  WeightCopies copies = WeightCopies::none;
  OverlappingCollectives overlapping = OverlappingCollectives::none;
  SearchedFor searched = SearchedFor::all;
  bool changes_profile = true; ///< whether it changes the costs of a block on one device
  // Rules of the mesh axis, as in MeshAxis. A toggle adds its rules to the axis that it uses.
  std::optional<std::size_t> inputs;
  bool weights = false;
  bool between = false;
  bool experts = false;

  /// Whether ranks along the axis hold copies of a weight, or of an expert's weight.
  bool has_copies(bool of_experts) const {
    return copies == WeightCopies::all || (copies == WeightCopies::all_but_experts && !of_experts);
  }
};

/// The table of roles, in the order of the enumeration.
std::span<const AxisRoleRow> axis_roles();
const AxisRoleRow& row_of(AxisRole role);
/// Finds a role by its key. Throws InternalError for an unknown key.
AxisRole axis_role(std::string_view key);
/// How messages name the product of the degrees that divide something: "pipeline * virtual".
std::string_view divisor_of(Divided what);

/// Roles whose degrees multiply to the number of devices, in the order of messages.
inline constexpr std::array kDeviceRoles{AxisRole::data, AxisRole::context, AxisRole::tensor,
                                         AxisRole::pipeline};
/// Roles of the mesh of a stage's devices; the last varies fastest.
inline constexpr std::array kMeshRoles{AxisRole::data, AxisRole::expert, AxisRole::context,
                                       AxisRole::tensor};
/// Roles in the order in which a search chooses degrees. The axis that divides samples gets the
/// remaining devices.
inline constexpr std::array kSearchOrder{AxisRole::tensor, AxisRole::pipeline, AxisRole::context,
                                         AxisRole::data,   AxisRole::expert,   AxisRole::sequence};

/// An axis of a strategy.
struct ParallelAxis {
  AxisRole role = AxisRole::data;
  std::int64_t degree = 1; ///< see AxisForm
};

/// The axes of a strategy, one per role. An axis that is not given has its neutral degree: 1, or 0
/// for the forms `toggle` and `stage`.
class ParallelAxes {
public:
  ParallelAxes();
  ParallelAxes(std::initializer_list<ParallelAxis> axes);

  std::int64_t& operator[](AxisRole role) { return degrees_[static_cast<std::size_t>(role)]; }
  std::int64_t operator[](AxisRole role) const { return degrees_[static_cast<std::size_t>(role)]; }
  /// Whether the degree is not the neutral one.
  bool has(AxisRole role) const;
  /// Sets the neutral degree.
  void reset(AxisRole role);
  friend auto operator<=>(const ParallelAxes&, const ParallelAxes&) = default;

private:
  std::array<std::int64_t, kAxisRoles> degrees_{};
};

/// Degrees to choose from, by role. An empty list stands for all possible ones.
class AxisChoices {
public:
  AxisChoices() = default;
  AxisChoices(std::initializer_list<std::pair<AxisRole, std::vector<std::int64_t>>> choices) {
    for (const auto& [role, degrees] : choices)
      (*this)[role] = degrees;
  }

  std::vector<std::int64_t>& operator[](AxisRole role) {
    return degrees_[static_cast<std::size_t>(role)];
  }
  const std::vector<std::int64_t>& operator[](AxisRole role) const {
    return degrees_[static_cast<std::size_t>(role)];
  }

private:
  std::array<std::vector<std::int64_t>, kAxisRoles> degrees_;
};

/// Activations that are recomputed in the backward pass.
enum class RecomputeKind {
  none,
  selective, ///< attention's results between its products (Korthikanti et al. 2022)
  full,      ///< every layer; only its input is stored
};
std::string_view name_of(RecomputeKind kind);

/// Data that are kept in the host's memory while no device needs them.
enum class OffloadKind {
  none,
  states,      ///< optimiser states, fetched for the update and written back (as in ZeRO-Infinity)
  activations, ///< stored activations, written after a block's forward pass and fetched for its
               ///< backward pass
  both,
};
std::string_view name_of(OffloadKind kind);
std::span<const std::string_view> offload_kind_names(); ///< names in the order of the enumeration
bool offloads_states(OffloadKind kind);
bool offloads_activations(OffloadKind kind);

/// A parallel strategy: the `parallel:` part of an experiment.
struct ParallelStrategy {
  ParallelAxes axes;
  PipelineKind schedule = PipelineKind::one_f_one_b;
  std::int64_t micro_batch = 1;  ///< samples per data rank and micro-batch
  std::int64_t global_batch = 1; ///< samples per step
  RecomputeKind recompute = RecomputeKind::none;
  OffloadKind offload = OffloadKind::none;
  /// Whether communication overlaps with computation. Gradients are exchanged during the last
  /// backward pass, shards of parameters are gathered during earlier passes, and host copies run
  /// during passes and updates. Otherwise computation waits for each of them.
  bool overlap = true;
  /// Number of a transformer's layers in each part of the model, pipeline * virtual numbers in
  /// order. The first and last part also hold embedding and logits and may have no layers. Empty:
  /// equal numbers.
  std::vector<std::int64_t> layers;

  std::int64_t stages() const { return axes[AxisRole::pipeline]; }
  std::int64_t parts_per_stage() const { return axes[AxisRole::virtual_stages]; }
  std::int64_t parts() const { return stages() * parts_per_stage(); }
  int zero() const { return static_cast<int>(axes[AxisRole::zero]); } ///< ZeRO's stage
  std::int64_t devices() const; ///< the product of the degrees of kDeviceRoles
  std::int64_t ranks_of_stage() const { return devices() / stages(); }
  /// Number of parts into which the axes divide something; 1 for states, whose parts depend on the
  /// tensor (ranks_with_copies()).
  std::int64_t parts_of(Divided what) const;
  /// Ranks of a stage that hold copies of a weight, or of an expert's weight.
  std::int64_t ranks_with_copies(bool of_experts) const;
  /// Samples of all ranks in a micro-batch.
  std::int64_t samples_at_once() const { return micro_batch * parts_of(Divided::samples); }
  std::int64_t micro_batches() const { return global_batch / samples_at_once(); }
  friend bool operator==(const ParallelStrategy&, const ParallelStrategy&) = default;
};

/// The strategies to compare: all consistent combinations of these values. An empty list stands for
/// all values that divide the respective size, or for all kinds of schedule, recomputation and
/// offload.
struct StrategySpace {
  AxisChoices axes;
  std::vector<std::int64_t> micro_batch;
  std::vector<PipelineKind> schedule;
  std::vector<RecomputeKind> recompute;
  std::vector<OffloadKind> offload;
  std::int64_t global_batch = 1;
  bool overlap = true;
};

/// Reads a strategy. Keys are those of the roles and the fields' names. A missing key defaults to 1
/// or none; `global_batch` defaults to one micro-batch per data rank and pipeline stage. Unknown
/// keys and invalid values are added to `problems`.
ParallelStrategy read_strategy(const YamlNode& node, ProblemList& problems);
/// Reads a strategy space from the `parallel:` part of an experiment; a key may hold one value or a
/// list, and a missing key is free. `global_batch` is a required number; `overlap` is one value.
/// Unknown keys, invalid values and duplicates are added to `problems`.
StrategySpace read_strategy_space(const YamlNode& node, ProblemList& problems);
/// Short form with the settings that differ from the defaults: "d16 t8 p8 v3 seq zero1 interleaved
/// mb1 selective".
std::string to_string(const ParallelStrategy& strategy);
/// Inconsistencies of a strategy, one sentence with numbers each: degrees versus the cluster's
/// devices, micro-batches, experts. Empty if it is consistent. Heads and layers are not checked
/// here.
std::vector<std::string> find_misfits(const ParallelStrategy& strategy,
                                      std::int64_t cluster_devices);
/// Number of ranks along an axis of a stage's mesh.
std::int64_t mesh_size(const ParallelStrategy& strategy, AxisRole role);
/// Mesh of one stage, in the order of kMeshRoles.
std::vector<MeshAxis> mesh_of(const ParallelStrategy& strategy);
/// The roles of the mesh's axes along which all ranks have the whole activations of a stage.
std::vector<AxisRole> roles_with_whole_inputs(const ParallelStrategy& strategy);

} // namespace monet
