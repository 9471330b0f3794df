// Tile sizes of the joint search and lower bounds of a structure over ranges of tiles; search.cpp
// prunes with them.
#include "core_cost/joint_mapping/box_bound.hpp"

#include "monet/base/units.hpp"

#include <algorithm>
#include <utility>

namespace monet::joint_mapping {
namespace {

/// Number of parts above which sizes grow by 1/64; otherwise a size of 2^40 would have two million
/// tiles.
constexpr std::int64_t kManyParts = 2048;

/// Distinct values of ceil(size / parts), falling.
std::vector<std::int64_t> min_tiles(std::int64_t size) {
  std::vector<std::int64_t> tiles{size};
  for (std::int64_t parts = 1; tiles.back() > 1;) {
    const std::int64_t wider = parts < kManyParts ? 0 : parts + parts / 64;
    parts = std::max(ceil_div(size, tiles.back() - 1), wider);
    const std::int64_t tile = ceil_div(size, parts);
    tiles.push_back(tile);
  }
  return tiles;
}

/// Contribution of a dimension to a product's cycles: folds if it lies on the array, otherwise
/// streaming with filling and draining.
double share_of_cycles(const PairProblem& problem, int product, int dim, std::int64_t tile) {
  if (problem.timing == TileTiming::core || problem.timing == TileTiming::none)
    return 0;
  const std::array<int, 3> roles = array_roles(product, problem.timing);
  const std::int64_t size = problem.size[at(dim)];
  const std::int64_t parts = ceil_div(size, tile);
  const std::int64_t last = size - (parts - 1) * tile;
  if (roles[2] == dim)
    return static_cast<double>(size) +
           static_cast<double>(parts) * static_cast<double>(problem.fill);
  const std::int64_t side = roles[0] == dim ? problem.rows : problem.columns;
  return static_cast<double>(parts - 1) * static_cast<double>(ceil_div(tile, side)) +
         static_cast<double>(ceil_div(last, side));
}

/// Corrects bounds that rounding may have raised.
constexpr double kRounding = 1 - 1e-12;

} // namespace

std::vector<std::int64_t> tile_sizes(std::int64_t size, const std::vector<std::int64_t>& grains) {
  std::vector<std::int64_t> tiles = min_tiles(size);
  for (const std::int64_t grain : grains) {
    for (const std::int64_t folds : min_tiles(ceil_div(size, grain)))
      tiles.push_back(std::min(folds * grain, size));
  }
  std::ranges::sort(tiles);
  tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
  return tiles;
}

TileRanges::TileRanges(const PairProblem& problem, int dim, std::vector<std::int64_t> tiles)
    : tiles_(std::move(tiles)) {
  std::size_t room = 1;
  while (room < tiles_.size())
    room *= 2;
  nodes_.resize(2 * room);
  make(problem, dim, 0, static_cast<std::uint32_t>(tiles_.size()), 0);
}

TileRanges::Node TileRanges::make(const PairProblem& problem, int dim, std::uint32_t begin,
                                  std::uint32_t end, std::uint32_t number) {
  Node node;
  if (end - begin == 1) {
    const std::int64_t tile = tiles_[begin];
    node.min_tile = node.max_tile = tile;
    node.min_parts = node.max_parts = ceil_div(problem.size[at(dim)], tile);
    node.min_last = problem.size[at(dim)] - (node.min_parts - 1) * tile;
    for (const int product : {kDx, kDw})
      node.min_cycles[at(product)] = share_of_cycles(problem, product, dim, tile);
  } else {
    const std::uint32_t middle = begin + (end - begin + 1) / 2;
    const Node left = make(problem, dim, begin, middle, 2 * number + 1);
    const Node right = make(problem, dim, middle, end, 2 * number + 2);
    node = left;
    node.max_tile = right.max_tile;
    node.min_last = std::min(left.min_last, right.min_last);
    node.min_parts = right.min_parts;
    for (std::size_t p = 0; p < 2; ++p)
      node.min_cycles[p] = std::min(left.min_cycles[p], right.min_cycles[p]);
  }
  node.begin = begin;
  node.end = end;
  nodes_[number] = node;
  return node;
}

Box::Box(const PairProblem& problem, const TileSpace& tiles,
         const std::array<std::uint32_t, kDims>& at_nodes)
    : nodes(at_nodes), single(true) {
  cycles.fill(static_cast<double>(problem.cycle_units));
  for (std::size_t d = 0; d < kDims; ++d) {
    const TileRanges::Node& node = tiles[d][nodes[d]];
    min_tile[d] = static_cast<double>(node.min_tile);
    max_tile[d] = static_cast<double>(node.max_tile);
    min_last[d] = static_cast<double>(node.min_last);
    min_parts[d] = static_cast<double>(node.min_parts);
    max_parts[d] = static_cast<double>(node.max_parts);
    for (std::size_t p = 0; p < 2; ++p)
      cycles[p] *= node.min_cycles[p];
    single = single && node.single();
    cuts += kPlaceOfCut[d] * (node.max_parts == 1 ? kWhole : node.min_parts > 1 ? kCut : kOpen);
  }
}

Tile Box::tile() const {
  Tile tile{};
  for (std::size_t d = 0; d < kDims; ++d)
    tile[d] = static_cast<std::int64_t>(min_tile[d]);
  return tile;
}

StructureBound::StructureBound(const PairProblem& problem, const Structure& structure)
    : s_(structure), shape_(problem, structure) {
  const auto units = static_cast<double>(problem.move_units);
  if (problem.update && s_.product == kDw)
    update_start_ = static_cast<double>(problem.update_read) * units;
  for (const int product : {kDx, kDw}) {
    add_crossings(problem, product);
    finish_[at(product)] =
        units * static_cast<double>(product == kDw && problem.update
                                        ? problem.update_write
                                        : problem.moved[at(operand_of(product, kResult))]);
    for (int place = 0; place < kResult; ++place) {
      const BackwardOperand operand = operand_of(product, place);
      const bool there = operand == BackwardOperand::dy && s_.dy == DyUse::present;
      start_[at(product)][at(place)] =
          there ? 0 : static_cast<double>(problem.moved[at(operand)]) * units;
    }
  }
  count_traffic(problem);
}

void StructureBound::count_traffic(const PairProblem& problem) {
  const auto units = static_cast<double>(problem.move_units);
  const bool common = s_.dy != DyUse::separate;
  for (std::size_t d = kDims + 1; d-- > 0;) {
    const bool base = d == kDims;
    std::array<std::int64_t, kDims> parts{1, 1, 1};
    if (!base)
      parts[d] = 2;
    const FineTraffic traffic = traffic_of(problem, s_, parts);
    const auto set = [&](Linear& linear, std::int64_t moved) {
      const double time = static_cast<double>(moved) * units;
      (base ? linear.base : linear.more[base ? 0 : d]) = base ? time : time - linear.base;
    };
    set(all_, traffic.bits());
    for (const int product : {kDx, kDw})
      set(own_[at(product)], traffic.of(product) - (common ? traffic.dy_of[at(product)] : 0));
    if (common && s_.form != Form::lockstep)
      set(dy_, traffic.dy_of[0] + traffic.dy_of[1]);
  }
}

void StructureBound::add_crossings(const PairProblem& problem, int product) {
  const auto units = static_cast<double>(problem.move_units);
  for (int place = 0; place < 3; ++place) {
    const BackwardOperand operand = operand_of(product, place);
    Crossing& c = crossings_[at(product)][at(place)];
    c.absent = absent_dim(operand);
    c.common = operand == BackwardOperand::dy && s_.dy != DyUse::separate;
    c.result = place == kResult;
    c.elements = 1;
    for (int d = 0; d < kDims; ++d) {
      if (d == c.absent)
        continue;
      c.tiles[at(d)] = position(s_, product, d) >= s_.shared;
      if (!c.tiles[at(d)])
        c.elements *= static_cast<double>(problem.size[at(d)]);
    }
    c.repeated = position(s_, product, c.absent) < s_.shared &&
                 (c.common ? s_.dy == DyUse::block : !s_.once[at(product)][at(place)]);
    const std::int64_t finished = c.result && product == kDw && problem.update
                                      ? problem.update_read + problem.update_write
                                      : problem.moved[at(operand)];
    c.moved = static_cast<double>(finished) * units;
    c.partial = static_cast<double>(problem.moved_partial[at(operand)]) * units;
  }
}

bool StructureBound::fits(const Box& box, double room) const {
  return shape_.held(box.min_tile) <= room;
}

/// Data of one product moved while the other computes: reads of the first step of each turn and
/// writes of the last. An upper bound with `most`, otherwise a lower bound without writes.
double StructureBound::crossing(const Box& box, int product, int first, bool most) const {
  const std::array<double, kDims>& tile = most ? box.max_tile : box.min_tile;
  const std::array<double, kDims>& parts = most ? box.max_parts : box.min_parts;
  double sum = 0;
  for (const Crossing& c : crossings_[at(product)]) {
    if (c.common && product != first)
      continue;
    double elements = c.elements;
    for (std::size_t d = 0; d < kDims; ++d)
      elements *= c.tiles[d] ? tile[d] : 1;
    const double times = c.repeated ? parts[at(c.absent)] : 1;
    if (!c.result)
      sum += elements * times * c.moved;
    else
      sum += elements * ((times - 1) * c.partial * (most ? 2 : 1) + (most ? c.moved : 0));
  }
  return sum;
}

/// Data that the first step reads and the last one writes.
double StructureBound::ends(const Box& box, int first) const {
  double sum = 0;
  for (int place = 0; place < kResult; ++place)
    sum += elements_of(operand_of(first, place), box.min_tile) * start_[at(first)][at(place)];
  const int last = s_.form == Form::single ? first : 1 - first;
  return sum + elements_of(operand_of(last, kResult), box.min_last) * finish_[at(last)];
}

double StructureBound::max_first_read(const Box& box) const {
  double sum = 0;
  for (int place = 0; place < kResult; ++place)
    sum += elements_of(operand_of(s_.product, place), box.max_tile) *
           start_[at(s_.product)][at(place)];
  // A product that completes its results also updates weights.
  return sum + elements_of(BackwardOperand::dw, box.max_tile) * update_start_;
}

double StructureBound::max_last_write(const Box& box) const {
  return elements_of(operand_of(s_.product, kResult), box.max_tile) * finish_[at(s_.product)];
}

double StructureBound::time(const Box& box, int first, double limit) const {
  std::array<double, 2> cycles{};
  for (const int product : {kDx, kDw})
    cycles[at(product)] = s_.uses(product) ? box.cycles[at(product)] : 0;
  const double most =
      std::max(cycles[kDx] + cycles[kDw] + ends(box, first), all_.at(box.min_parts)) * kRounding;
  if (s_.form == Form::single || most >= limit)
    return most;
  std::array<double, 2> moves{own_[kDx].at(box.min_parts), own_[kDw].at(box.min_parts)};
  moves[at(first)] += dy_.at(box.min_parts);
  if (s_.form == Form::lockstep || s_.shared == kDims) {
    const double turns = std::max(cycles[kDx], moves[kDw]) + std::max(cycles[kDw], moves[kDx]);
    return std::max(most, turns * kRounding);
  }
  double turns = 0;
  for (const int product : {kDx, kDw})
    turns += std::max(cycles[at(product)], moves[at(product)] +
                                               crossing(box, 1 - product, first, false) -
                                               crossing(box, product, first, true));
  return std::max(most, turns * kRounding);
}

} // namespace monet::joint_mapping
