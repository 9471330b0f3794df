// The table of the roles of a strategy's axes, and what follows from it for one strategy, by hand.
#include "monet/base/errors.hpp"
#include "monet/cluster/strategy.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace monet {

namespace {

/// 24 data ranks in 12 groups of 2 that share experts, 3 context and 4 tensor ranks, 2 stages.
ParallelStrategy some() {
  return {.axes = {{AxisRole::data, 24},
                   {AxisRole::expert, 2},
                   {AxisRole::context, 3},
                   {AxisRole::tensor, 4},
                   {AxisRole::sequence, 1},
                   {AxisRole::pipeline, 2},
                   {AxisRole::virtual_stages, 5},
                   {AxisRole::zero, 2}},
          .micro_batch = 2,
          .global_batch = 96};
}

TEST(AxisRoles, AreInTheOrderOfTheEnumeration) {
  std::set<std::string_view> keys;
  for (std::size_t i = 0; i < kAxisRoles; ++i) {
    const AxisRoleRow& row = axis_roles()[i];
    EXPECT_EQ(static_cast<std::size_t>(row.role), i);
    EXPECT_EQ(axis_role(row.key), row.role);
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    EXPECT_FALSE(row.letter.empty()) << row.key;
    EXPECT_FALSE(ParallelAxes().has(row.role)) << row.key;
    EXPECT_EQ(row.within.has_value(), row.form == AxisForm::toggle || row.role == AxisRole::expert)
        << row.key;
  }
  EXPECT_THROW(axis_role("rows"), InternalError);
}

TEST(AxisRoles, DivideDevicesAndSizes) {
  const ParallelStrategy strategy = some();
  EXPECT_EQ(strategy.devices(), 24 * 3 * 4 * 2);
  EXPECT_EQ(strategy.ranks_of_stage(), 24 * 3 * 4);
  EXPECT_EQ(strategy.parts_of(Divided::samples), 24);
  EXPECT_EQ(strategy.parts_of(Divided::heads), 4);
  EXPECT_EQ(strategy.parts_of(Divided::layers), 2 * 5);
  EXPECT_EQ(strategy.parts_of(Divided::tokens), 3 * 4); // tensor ranks share them, too
  EXPECT_EQ(strategy.parts_of(Divided::experts), 2);
  EXPECT_EQ(strategy.parts_of(Divided::states), 1);
  EXPECT_EQ(strategy.samples_at_once(), 48);
  EXPECT_EQ(strategy.micro_batches(), 2);
  EXPECT_EQ(strategy.ranks_with_copies(false), 24 * 3);
  EXPECT_EQ(strategy.ranks_with_copies(true), 12 * 3); // two ranks have different experts
  ParallelStrategy whole = strategy;
  whole.axes.reset(AxisRole::sequence);
  EXPECT_EQ(whole.parts_of(Divided::tokens), 3);
  EXPECT_EQ(roles_with_whole_inputs(strategy), std::vector<AxisRole>{});
  EXPECT_EQ(roles_with_whole_inputs(whole), std::vector<AxisRole>{AxisRole::tensor});
}

TEST(AxisRoles, GiveTheMeshItsRules) {
  const auto words = [](const MeshAxis& axis) {
    return axis.name + " " + std::to_string(axis.size) +
           (axis.inputs ? " inputs " + std::to_string(*axis.inputs) : "") +
           (axis.weights ? " weights" : "") + (axis.between ? " between" : "") +
           (axis.experts ? " experts" : "") + " zero " + std::to_string(axis.zero);
  };
  const auto mesh = [&](const ParallelStrategy& strategy) {
    std::vector<std::string> axes;
    for (const MeshAxis& axis : mesh_of(strategy))
      axes.push_back(words(axis));
    return axes;
  };
  EXPECT_EQ(mesh(some()),
            (std::vector<std::string>{"data 12 inputs 0 zero 2", "expert 2 inputs 0 experts zero 2",
                                      "context 3 inputs 1 zero 2",
                                      "tensor 4 inputs 1 weights between zero 0"}));
  EXPECT_EQ(mesh({}),
            (std::vector<std::string>{"data 1 inputs 0 zero 0", "expert 1 inputs 0 experts zero 0",
                                      "context 1 inputs 1 zero 0", "tensor 1 weights zero 0"}));
}

TEST(AxisRoles, HaveShortForms) {
  EXPECT_EQ(to_string(some()), "d24 t4 p2 v5 c3 e2 seq zero2 1f1b mb2 gb96");
  EXPECT_EQ(to_string({}), "mb1 gb1");
}

} // namespace

} // namespace monet
