// The table of the roles of a strategy's axes. Everything that one role does otherwise than another
// is a column here; the strategy, the cost models and the planner read the columns.
#include "monet/cluster/strategy.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::array<AxisRoleRow, kAxisRoles> kRoles{{
    {.role = AxisRole::data,
     .key = "data",
     .letter = "d",
     .divides = Divided::samples,
     .copies = WeightCopies::all,
     .overlapping = OverlappingCollectives::all,
     .inputs = 0},
    {.role = AxisRole::tensor,
     .key = "tensor",
     .letter = "t",
     .divides = Divided::heads,
     .weights = true},
    {.role = AxisRole::pipeline,
     .key = "pipeline",
     .letter = "p",
     .divides = Divided::layers,
     .changes_profile = false},
    {.role = AxisRole::virtual_stages,
     .key = "virtual",
     .letter = "v",
     .divides = Divided::layers,
     .searched = SearchedFor::transformers,
     .changes_profile = false},
    {.role = AxisRole::sequence,
     .key = "sequence",
     .letter = "seq",
     .form = AxisForm::toggle,
     .maximum = 1,
     .divides = Divided::tokens,
     .within = AxisRole::tensor,
     .inputs = 1,
     .between = true},
    {.role = AxisRole::context,
     .key = "context",
     .letter = "c",
     .divides = Divided::tokens,
     .copies = WeightCopies::all,
     .overlapping = OverlappingCollectives::of_weights,
     .searched = SearchedFor::transformers,
     .inputs = 1},
    {.role = AxisRole::expert,
     .key = "expert",
     .letter = "e",
     .divides = Divided::experts,
     .within = AxisRole::data,
     .copies = WeightCopies::all_but_experts,
     .overlapping = OverlappingCollectives::all_but_all_to_all,
     .searched = SearchedFor::experts,
     .inputs = 0,
     .experts = true},
    {.role = AxisRole::zero,
     .key = "zero",
     .letter = "zero",
     .form = AxisForm::stage,
     .maximum = 3,
     .divides = Divided::states},
}};

/// By Divided.
constexpr std::array<std::string_view, 6> kDivisors{"data * micro_batch",
                                                    "tensor",
                                                    "pipeline * virtual",
                                                    "context * tensor ranks that share them",
                                                    "expert",
                                                    "zero"};

constexpr std::int64_t neutral(const AxisRoleRow& row) {
  return row.form == AxisForm::ranks ? 1 : 0;
}

} // namespace

std::span<const AxisRoleRow> axis_roles() {
  return kRoles;
}

const AxisRoleRow& row_of(AxisRole role) {
  return kRoles[static_cast<std::size_t>(role)];
}

AxisRole axis_role(std::string_view key) {
  const auto found = std::ranges::find(kRoles, key, &AxisRoleRow::key);
  internal_check(found != kRoles.end(), fmt::format("no axis of a strategy is named '{}'", key));
  return found->role;
}

std::string_view divisor_of(Divided what) {
  return kDivisors[static_cast<std::size_t>(what)];
}

ParallelAxes::ParallelAxes() {
  std::ranges::transform(kRoles, degrees_.begin(), neutral);
}

ParallelAxes::ParallelAxes(std::initializer_list<ParallelAxis> axes) : ParallelAxes() {
  for (const ParallelAxis& axis : axes)
    (*this)[axis.role] = axis.degree;
}

bool ParallelAxes::has(AxisRole role) const {
  return (*this)[role] != neutral(row_of(role));
}

void ParallelAxes::reset(AxisRole role) {
  (*this)[role] = neutral(row_of(role));
}

} // namespace monet
