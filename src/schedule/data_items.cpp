#include "schedule/data_items.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <algorithm>
#include <map>

namespace monet {

namespace {

struct BoxLess {
  bool operator()(const Box& a, const Box& b) const {
    return std::lexicographical_compare(
        a.begin(), a.end(), b.begin(), b.end(), [](Interval x, Interval y) {
          return x.begin != y.begin ? x.begin < y.begin : x.end < y.end;
        });
  }
};

class ItemMaker {
public:
  ItemMaker(const TileGraph& tiles, const Graph& graph,
            const std::vector<const CoreProblem*>& problems, const std::vector<PoolId>& pool_of)
      : tiles_(tiles), graph_(graph), problems_(problems), pool_of_(pool_of),
        required_(required_offchip(graph)), known_(graph.tensors().size()) {}

  DataItems make() {
    result_.tiles.resize(tiles_.tiles.size());
    for (std::size_t t = 0; t < tiles_.tiles.size(); ++t)
      add_tile(TileId(t));
    for (Item& item : result_.items)
      std::sort(item.uses.begin(), item.uses.end());
    return std::move(result_);
  }

private:
  void add_tile(TileId id) {
    const Tile& tile = tiles_.tiles[id.index()];
    const auto& operands = graph_.op(tile.op).nest.operands;
    tiles_.ranges(id, ranges_);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Tensor& tensor = graph_.tensor(operands[i].tensor);
      const Box box = region(operands[i], ranges_, tensor.shape);
      if (volume(box) == 0)
        continue;
      if (operands[i].mode == AccessMode::read) {
        add_read(id, i, box);
      } else {
        const ItemId piece = intern(operands[i].tensor, box);
        result_.items[piece.index()].piece = piece;
        boxes_of_pieces_.resize(result_.items.size());
        boxes_of_pieces_[piece.index()] = box;
        if (required_[operands[i].tensor.index()])
          result_.items[piece.index()].to_offchip = true;
        result_.tiles[id.index()].outputs.push_back(
            {i, piece, problems_[id.index()]->operands[i].offchip});
      }
    }
  }

  void add_read(TileId id, std::size_t operand, const Box& box) {
    const Tile& tile = tiles_.tiles[id.index()];
    const TensorId tensor = graph_.op(tile.op).nest.operands[operand].tensor;
    const bool streamed = problems_[id.index()]->operands[operand].offchip;
    if (streamed)
      result_.tiles[id.index()].streams.push_back({operand, {}});
    if (!graph_.tensor(tensor).producer) {
      if (!streamed)
        add_need(id, intern(tensor, box), operand);
      return;
    }
    for (const TileEdge& edge : tiles_.edges_into(id)) {
      if (edge.tensor != tensor)
        continue;
      const ItemId piece = piece_of(edge.from, tensor);
      Box part = boxes_of_pieces_[piece.index()];
      for (std::size_t a = 0; a < part.size(); ++a)
        part[a] = intersect(part[a], box[a]);
      if (volume(part) == 0)
        continue;
      add_reader(id, piece);
      if (streamed) {
        result_.tiles[id.index()].streams.back().pieces.push_back(piece);
        result_.items[piece.index()].to_offchip = true;
      } else {
        const ItemId item = intern(tensor, part);
        result_.items[item.index()].piece = piece;
        add_need(id, item, operand);
      }
    }
  }

  ItemId piece_of(TileId tile, TensorId tensor) const {
    for (const TileOutput& output : result_.tiles[tile.index()].outputs) {
      if (result_.items[output.piece.index()].tensor == tensor)
        return output.piece;
    }
    throw InternalError("an edge leaves a tile that does not write its tensor");
  }

  void add_reader(TileId tile, ItemId piece) {
    auto& pieces = result_.tiles[tile.index()].pieces;
    if (std::find(pieces.begin(), pieces.end(), piece) != pieces.end())
      return;
    pieces.push_back(piece);
    ++result_.items[piece.index()].readers;
  }

  void add_use(ItemId item, TileId tile) {
    const ItemUse use{pool_of_[tiles_.tiles[tile.index()].core.index()], tile};
    auto& uses = result_.items[item.index()].uses;
    if (uses.empty() || uses.back() != use)
      uses.push_back(use); // one tile's uses come together
  }

  void add_need(TileId tile, ItemId item, std::size_t operand) {
    auto& needs = result_.tiles[tile.index()].needs;
    const bool known = std::any_of(needs.begin(), needs.end(),
                                   [&](const ItemNeed& need) { return need.item == item; });
    if (known)
      return;
    needs.push_back({item, problems_[tile.index()]->operands[operand].memory});
    add_use(item, tile);
    const std::optional<ItemId> piece = result_.items[item.index()].piece;
    if (piece && *piece != item)
      add_use(*piece, tile);
  }

  ItemId intern(TensorId tensor, const Box& box) {
    const auto [entry, added] = known_[tensor.index()].emplace(box, ItemId(result_.items.size()));
    if (added) {
      Item item;
      item.tensor = tensor;
      item.bits = storage_of(graph_.tensor(tensor).type, volume(box));
      result_.items.push_back(std::move(item));
    }
    return entry->second;
  }

  const TileGraph& tiles_;
  const Graph& graph_;
  const std::vector<const CoreProblem*>& problems_;
  const std::vector<PoolId>& pool_of_;
  std::vector<bool> required_;
  std::vector<std::map<Box, ItemId, BoxLess>> known_; ///< per tensor
  std::vector<Box> boxes_of_pieces_;                  ///< per item, empty for parts
  DataItems result_;
  std::vector<Interval> ranges_;
};

} // namespace

std::vector<bool> required_offchip(const Graph& graph) {
  std::vector<bool> required(graph.tensors().size(), false);
  for (const TensorId output : graph.outputs)
    required[output.index()] = true;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const auto root = graph.tensors()[i].alias_of;
    if (root && !graph.tensor(*root).producer)
      required[i] = true;
  }
  return required;
}

DataItems make_data_items(const TileGraph& tiles, const Graph& graph,
                          const std::vector<const CoreProblem*>& problems,
                          const std::vector<PoolId>& pool_of) {
  return ItemMaker(tiles, graph, problems, pool_of).make();
}

} // namespace monet
