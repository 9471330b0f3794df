// Finds the Pareto-optimal rows of groups, and expands the orders of shared loops. The enumeration
// of rows (rows.cpp) and joins (join.cpp) call this.
#include "reference/einsum/rows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace monet::einsum {

void keep_pareto(const std::vector<std::int64_t>& values, std::size_t stride, std::size_t columns,
                 std::vector<std::uint32_t>& order) {
  const std::size_t count = values.size() / stride;
  order.resize(count);
  std::iota(order.begin(), order.end(), 0U);
  const auto row = [&](std::uint32_t i) { return values.data() + i * stride; };
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const auto [x, y] = std::mismatch(row(a), row(a) + columns, row(b));
    return x == row(a) + columns ? a < b : *x < *y;
  });
  std::size_t kept = 0;
  for (const std::uint32_t i : order) {
    const std::int64_t* candidate = row(i);
    bool dominated = false;
    const std::size_t oldest =
        columns == 2 && kept > 0 ? kept - 1 : 0; // two columns: only the last kept row matters
    for (std::size_t k = kept; k-- > oldest && !dominated;) {
      const std::int64_t* other = row(order[k]);
      std::size_t column = 1;
      while (column < columns && other[column] <= candidate[column])
        ++column;
      dominated = column == columns;
    }
    if (!dominated)
      order[kept++] = i;
  }
  order.resize(kept);
}

void keep_pareto(RowGroup& group) {
  std::vector<std::uint32_t> order;
  keep_pareto(group.values, group.stride(), group.stride(), order);
  RowGroup kept;
  for (const std::uint32_t i : order) {
    kept.values.insert(kept.values.end(), group.row(i), group.row(i) + group.stride());
    kept.sources.push_back(group.sources[i]);
  }
  group.values = std::move(kept.values);
  group.sources = std::move(kept.sources);
}

void append_loops(PathKey& key, const std::vector<PathLoop>& loops) {
  for (const PathLoop& loop : loops) {
    key.push_back(loop.rank);
    key.push_back(loop.tile);
  }
}

void add_orders(const UnorderedRows& rows, std::map<PathKey, RowGroup>& groups) {
  const RowGroup& from = rows.group;
  std::vector<std::vector<PathLoop>> turned = rows.blocks;
  for (;;) {
    PathKey key(from.levels.begin(), from.levels.end());
    for (const std::vector<PathLoop>& loops : turned)
      append_loops(key, loops);
    RowGroup& group = groups[key];
    if (group.levels.empty()) {
      group.levels = from.levels;
      group.tile_bits = from.tile_bits;
      for (const std::vector<PathLoop>& loops : turned)
        group.path.insert(group.path.end(), loops.begin(), loops.end());
    }
    group.values.insert(group.values.end(), from.values.begin(), from.values.end());
    group.sources.insert(group.sources.end(), from.sources.begin(), from.sources.end());
    std::size_t block = 0;
    while (block < turned.size() &&
           !std::next_permutation(turned[block].begin(), turned[block].end()))
      ++block;
    if (block == turned.size())
      return;
  }
}

} // namespace monet::einsum
