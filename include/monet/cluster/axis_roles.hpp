// Roles of the axes of a parallel strategy. The table in src/cluster/strategy/axis_roles.cpp has a
// row per role with everything that distinguishes it; other code reads the columns.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

/// What an axis of a strategy does, in the order of the table.
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

/// What the degree of an axis counts.
enum class AxisForm : std::uint8_t {
  ranks,  ///< parts, at least 1
  toggle, ///< 0 or 1: whether the ranks of another axis also divide something else
  stage,  ///< 0 to `maximum`: how much is divided
};

/// What an axis divides among its ranks.
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
/// The role with this key. Throws InternalError if there is none.
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

} // namespace monet
