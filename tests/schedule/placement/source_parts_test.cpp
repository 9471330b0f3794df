#include "schedule/placement/source_parts.hpp"
#include "schedule/small_steps.hpp"
#include "tiling/shared/grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace monet {
namespace {

using testing::StepBuilder;

/// w [128, 128], read by operators that are cut along one axis each: (axis, parts).
struct Readers {
  StepBuilder builder;
  TensorId w = builder.source("w", {128, 128});
  TileGraph tiles;
  explicit Readers(const std::vector<std::pair<std::size_t, std::int64_t>>& cuts) {
    for (std::size_t i = 0; i < cuts.size(); ++i)
      builder.output(builder.elementwise("out" + std::to_string(i), {w}));
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      OperatorTiling tiling = uncut(builder.graph().operators()[i].nest);
      cut(tiling, {cuts[i].first, cuts[i].second});
      const std::vector<CoreId> cores{CoreId(std::size_t{0})};
      append_tiles(tiles, OpId(i), std::move(tiling), cores);
    }
    rank_in_order(tiles);
    make_edges(tiles, builder.graph());
  }
  SourceParts parts() { return {tiles, builder.graph()}; }
  std::vector<std::uint32_t> of(const SourceParts& parts, std::size_t op,
                                std::uint32_t tile) const {
    const auto found =
        parts.parts_of(parts.reads_of(OpId(op))[0], TileId(tiles.operators[op].first + tile));
    std::vector<std::uint32_t> sorted(found.begin(), found.end());
    std::ranges::sort(sorted);
    return sorted;
  }
};

TEST(SourceParts, boxes_are_cut_at_each_others_borders) {
  Readers readers({{0, 4}, {0, 2}});
  const SourceParts parts = readers.parts();
  EXPECT_EQ(parts.parts().size(), 4U);
  EXPECT_EQ(readers.of(parts, 1, 0).size(), 2U); // half is two quarters
  EXPECT_EQ(readers.of(parts, 1, 0)[1], readers.of(parts, 0, 1)[0]);
}

TEST(SourceParts, who_would_cut_too_much_has_parts_of_its_own) {
  // The first goes over columns, the others over rows: together they would make 128 x 64 parts.
  Readers readers({{1, 128}, {0, 64}, {0, 32}});
  const SourceParts parts = readers.parts();
  EXPECT_EQ(parts.parts().size(), 128U + 64U);
  std::int64_t bits = 0;
  for (const std::uint32_t part : readers.of(parts, 2, 5))
    bits += parts.parts()[part].bits.value;
  EXPECT_EQ(bits, 4 * 128 * 32);
  // Four rows of the last are twice two of the second.
  EXPECT_EQ(readers.of(parts, 2, 5),
            (std::vector<std::uint32_t>{readers.of(parts, 1, 10)[0], readers.of(parts, 1, 11)[0]}));
  EXPECT_EQ(readers.of(parts, 0, 7).size(), 1U);
}

TEST(SourceParts, equal_boxes_are_one_part_even_so) {
  // The last reads rows as the first does, but the second lies in between.
  Readers readers({{0, 64}, {1, 128}, {0, 64}});
  const SourceParts parts = readers.parts();
  EXPECT_EQ(parts.parts().size(), 128U + 64U);
  EXPECT_EQ(readers.of(parts, 0, 9), readers.of(parts, 2, 9));
}

} // namespace
} // namespace monet
