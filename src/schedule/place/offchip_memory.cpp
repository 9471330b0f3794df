#include "schedule/place/offchip_memory.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"
#include "monet/schedule/bounds.hpp"
#include "monet/workload/operators.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

OffchipMemory::OffchipMemory(const Graph& graph, CoreId memory, const Pieces& pieces,
                             Residency& states, TimelineWriter& timeline)
    : graph_(graph), memory_(memory), pieces_(pieces), states_(states), timeline_(timeline),
      required_(required_offchip(graph)) {
  for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
    const Tensor& tensor = graph_.tensors()[t];
    const Bits size = size_of(tensor);
    if (!tensor.producer && !tensor.alias_of && size.value > 0)
      write_stay({TensorId(t), size}, Stay::kKept);
  }
}

std::optional<std::int64_t> OffchipMemory::stored_at(PieceId piece) const {
  if (!pieces_.made(piece))
    return 0;
  const std::uint32_t place = states_.state(piece).stored;
  return place != kNone ? std::optional(stored_[place].end) : std::nullopt;
}

void OffchipMemory::store(PieceId piece, TensorId tensor, Bits bits, std::int64_t start,
                          std::int64_t end) {
  std::uint32_t& place = states_.state(piece).stored;
  internal_check(place == kNone, "a piece is written off-chip twice");
  if (free_.empty()) {
    place = static_cast<std::uint32_t>(stored_.size());
    stored_.emplace_back();
  } else {
    place = free_.back();
    free_.pop_back();
  }
  stored_[place] = {tensor, bits, start, end, end, true};
}

void OffchipMemory::touch(PieceId piece, std::int64_t end) {
  const std::uint32_t place = states_.state(piece).stored;
  if (place != kNone)
    stored_[place].busy_until = std::max(stored_[place].busy_until, end);
}

void OffchipMemory::retire(PieceId piece) {
  std::uint32_t& place = states_.state(piece).stored;
  if (place == kNone || required_[stored_[place].tensor.index()])
    return;
  write_stay(stored_[place], {stored_[place].busy_until});
  stored_[place].there = false;
  free_.push_back(place);
  place = kNone;
}

/// Tensors that share storage with another take no room of their own, and what goes on to the host
/// takes none here.
void OffchipMemory::write_stay(const Stored& stored, Cycles end) {
  if (graph_.tensor(stored.tensor).alias_of || lies_in_host(graph_, stored.tensor))
    return;
  timeline_.add_stay(memory_, stored.tensor, stored.bits, {stored.start}, end);
  ever_ = checked_add(ever_, stored.bits.value);
}

void OffchipMemory::finish(Bits capacity) {
  for (const Stored& stored : stored_) {
    if (stored.there)
      write_stay(stored, Stay::kKept);
  }
  if (capacity.value <= 0 || ever_ <= capacity.value)
    return;
  const std::int64_t most = timeline_.most_held(memory_);
  if (most > capacity.value) {
    throw InfeasibleError(
        fmt::format("the off-chip memory holds {} bytes, but the step needs {}: {} bytes too many",
                    bytes_of(capacity), bytes_of({most}), bytes_of({most}) - bytes_of(capacity)));
  }
}

} // namespace monet
