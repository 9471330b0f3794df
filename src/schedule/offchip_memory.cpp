#include "schedule/offchip_memory.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace monet {

OffchipMemory::OffchipMemory(const DataItems& data, const Graph& graph)
    : data_(data), graph_(graph), required_(required_offchip(graph)), stored_(data.items.size()) {}

std::optional<std::int64_t> OffchipMemory::stored_at(std::optional<ItemId> piece) const {
  if (!piece)
    return 0;
  const auto& stored = stored_[piece->index()];
  return stored ? std::optional(stored->end) : std::nullopt;
}

void OffchipMemory::store(ItemId piece, std::int64_t start, std::int64_t end) {
  stored_[piece.index()] = Stored{start, end, end, false};
}

void OffchipMemory::touch(ItemId piece, std::int64_t end) {
  auto& stored = stored_[piece.index()];
  if (stored)
    stored->busy_until = std::max(stored->busy_until, end);
}

void OffchipMemory::retire(ItemId piece) {
  auto& stored = stored_[piece.index()];
  if (stored)
    stored->retired = true;
}

void OffchipMemory::finish(CoreId memory, Bits capacity, TimelineWriter& timeline) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes; // (cycle, bits)
  for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
    const Tensor& tensor = graph_.tensors()[t];
    const Bits size = size_of(tensor);
    if (tensor.producer || tensor.alias_of || size.value == 0)
      continue;
    timeline.add_stay(memory, TensorId(t), size, {0}, Stay::kKept);
    changes.emplace_back(0, size.value);
  }
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    const Item& item = data_.items[i];
    if (!stored_[i] || graph_.tensor(item.tensor).alias_of)
      continue;
    const bool goes = stored_[i]->retired && !required_[item.tensor.index()];
    timeline.add_stay(memory, item.tensor, item.bits, {stored_[i]->start},
                      goes ? Cycles{stored_[i]->busy_until} : Stay::kKept);
    changes.emplace_back(stored_[i]->start, item.bits.value);
    if (goes)
      changes.emplace_back(stored_[i]->busy_until, -item.bits.value);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t used = 0;
  std::int64_t most = 0;
  for (const auto& [cycle, bits] : changes) {
    used = checked_add(used, bits);
    most = std::max(most, used);
  }
  if (capacity.value > 0 && most > capacity.value) {
    throw InfeasibleError(
        fmt::format("the off-chip memory holds {} bytes, but the step needs {}: {} bytes too many",
                    bytes_of(capacity), bytes_of({most}), bytes_of({most}) - bytes_of(capacity)));
  }
}

} // namespace monet
