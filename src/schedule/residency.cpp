#include "schedule/residency.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

/// Bits of the distinct outermost memories of all operands.
std::int64_t top_capacity(const Core& core) {
  std::vector<const Memory*> counted;
  std::int64_t bits = 0;
  for (const MemoryOperand operand : {MemoryOperand::I1, MemoryOperand::I2, MemoryOperand::O}) {
    const Memory* top = core.top(operand);
    if (top == nullptr || std::find(counted.begin(), counted.end(), top) != counted.end())
      continue;
    counted.push_back(top);
    bits = checked_add(bits, checked_multiply(top->size.value, instances(core, *top)));
  }
  return bits;
}

} // namespace

Residency::Residency(const Chip& chip, std::size_t tiles, TimelineWriter& timeline)
    : placed_(tiles, false), timeline_(timeline) {
  std::vector<std::optional<PoolId>> assigned(chip.cores.size());
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    if (!assigned[c]) {
      const PoolId id(pools_.size());
      std::vector<CoreId> group{CoreId(c)};
      for (const auto& shared : chip.shared_memory) {
        if (std::find(shared.begin(), shared.end(), CoreId(c)) != shared.end())
          group = shared;
      }
      Pool pool;
      pool.owner = *std::min_element(group.begin(), group.end());
      pool.gateway = pool.owner;
      for (const CoreId core : group) {
        assigned[core.index()] = id;
        const bool reaches = chip.offchip && chip.connected(core, *chip.offchip);
        const bool owner_reaches = chip.offchip && chip.connected(pool.gateway, *chip.offchip);
        if (reaches && !owner_reaches)
          pool.gateway = core;
      }
      pool.capacity = top_capacity(chip.cores[c]);
      pools_.push_back(std::move(pool));
    }
    pool_of_.push_back(*assigned[c]);
  }
}

void Residency::attach(const DataItems& data) {
  data_ = &data;
  holders_.resize(data.items.size());
  cursors_.resize(data.items.size());
}

std::optional<CopyId> Residency::find(ItemId item, PoolId pool) const {
  for (const CopyId id : holders_[item.index()]) {
    if (copies_[id.index()].pool == pool)
      return id;
  }
  return std::nullopt;
}

std::uint32_t Residency::next_use(ItemId item, PoolId pool) {
  const auto& uses = data_->items[item.index()].uses;
  auto& cursors = cursors_[item.index()];
  // One cursor per pool, all made at the first question, at the pool's first use.
  if (cursors.empty()) {
    cursors.resize(pools_.size());
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      const auto first = std::partition_point(
          uses.begin(), uses.end(), [&](const ItemUse& use) { return use.pool < PoolId(p); });
      cursors[p] = static_cast<std::size_t>(first - uses.begin());
    }
  }
  std::size_t& at = cursors[pool.index()];
  while (at < uses.size() && uses[at].pool == pool && placed_[uses[at].tile.index()])
    ++at;
  return at < uses.size() && uses[at].pool == pool ? uses[at].tile.value : kNever;
}

CopyId Residency::add(PoolId pool_id, TensorId tensor, std::optional<ItemId> item, Bits bits,
                      std::int64_t start) {
  Pool& pool = pools_[pool_id.index()];
  internal_check(pool.used + bits.value <= pool.capacity, "a core's memory overflows");
  internal_check(start >= pool.clock, "space is used before it is free");
  pool.used += bits.value;
  const CopyId id(copies_.size());
  Copy copy;
  copy.tensor = tensor;
  copy.item = item;
  copy.pool = pool_id;
  copy.bits = bits;
  copy.start = start;
  copy.available = start;
  copy.busy_until = start;
  copy.next_use = item ? next_use(*item, pool_id) : kNever;
  if (item)
    holders_[item->index()].push_back(id);
  pool.live.emplace(copy.next_use, id);
  copies_.push_back(copy);
  return id;
}

void Residency::touch(CopyId id, std::int64_t end) {
  Copy& copy = copies_[id.index()];
  if (end <= copy.busy_until)
    return;
  if (copy.dead) {
    Pool& pool = pools_[copy.pool.index()];
    pool.dead.erase({copy.busy_until, id});
    pool.dead.emplace(end, id);
  }
  copy.busy_until = end;
}

void Residency::retire(CopyId id) {
  Copy& copy = copies_[id.index()];
  if (copy.dead)
    return;
  Pool& pool = pools_[copy.pool.index()];
  pool.live.erase({copy.next_use, id});
  pool.dead.emplace(copy.busy_until, id);
  copy.dead = true;
}

void Residency::refresh(CopyId id) {
  Copy& copy = copies_[id.index()];
  if (copy.dead || !copy.item)
    return;
  Pool& pool = pools_[copy.pool.index()];
  pool.live.erase({copy.next_use, id});
  copy.next_use = next_use(*copy.item, copy.pool);
  pool.live.emplace(copy.next_use, id);
}

std::optional<CopyId> Residency::victim(PoolId id) const {
  const Pool& pool = pools_[id.index()];
  for (const auto& entry : pool.dead) {
    if (copies_[entry.second.index()].pins == 0)
      return entry.second;
  }
  for (auto entry = pool.live.rbegin(); entry != pool.live.rend(); ++entry) {
    if (copies_[entry->second.index()].pins == 0)
      return entry->second;
  }
  return std::nullopt;
}

void Residency::remove(CopyId id) {
  const Copy& copy = copies_[id.index()];
  Pool& pool = pools_[copy.pool.index()];
  pool.live.erase({copy.next_use, id});
  pool.dead.erase({copy.busy_until, id});
  pool.used -= copy.bits.value;
  pool.clock = std::max(pool.clock, copy.busy_until);
  if (copy.item)
    std::erase(holders_[copy.item->index()], id);
  timeline_.add_stay(pool.owner, copy.tensor, copy.bits, {copy.start}, {copy.busy_until});
}

void Residency::finish() {
  for (Pool& pool : pools_) {
    std::vector<CopyId> left;
    for (const auto& entry : pool.dead)
      left.push_back(entry.second);
    for (const auto& entry : pool.live)
      left.push_back(entry.second);
    for (const CopyId id : left)
      remove(id);
  }
}

} // namespace monet
