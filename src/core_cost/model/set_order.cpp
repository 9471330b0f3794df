// Reproduces the iteration order of Python sets in ZigZag; spatial_generator.cpp and the streamed
// costs rely on it.
#include "core_cost/model/set_order.hpp"

#include "base/shared/sha512.hpp"

#include <cstdint>

namespace monet::core_cost_detail {

namespace {

/// Python's pickle of protocol 4: one frame around `body`, with its length.
std::string framed(std::string body) {
  std::string bytes("\x80\x04\x95", 3);
  for (std::size_t i = 0; i < 8; ++i)
    bytes += static_cast<char>(body.size() >> (8 * i) & 0xFFU);
  return bytes + body;
}

/// Short text, remembered for later references as pickle does.
std::string text(const std::string& name) {
  std::string bytes(1, '\x8c');
  bytes += static_cast<char>(name.size());
  return bytes + name + '\x94';
}

const char* class_of(NameKind kind) {
  switch (kind) {
  case NameKind::layer_dim:
    return "LayerDim";
  case NameKind::array_dim:
    return "OADimension";
  case NameKind::memory_operand:
    return "MemoryOperand";
  }
  return "";
}

std::uint64_t hash_of(const std::string& name, NameKind kind) {
  constexpr std::size_t kLongest = 255; // longer text is pickled in another form
  const std::string type = class_of(kind);
  const Sha512 own = sha512(framed(text(name.substr(0, kLongest)) + '.'));
  const Sha512 of_class = sha512(framed(text("zigzag.datatypes") + text(type) + "\x93\x94."));
  constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1; // Python reduces hashes by it
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::uint64_t word = own[i] ^ of_class[i];
    for (int bit = 63; bit >= 0; --bit)
      rest = (rest * 2 + (word >> bit & 1U)) % kPrime;
  }
  return rest;
}

/// CPython's set: powers of two, runs of ten slots where they fit, then a jump.
class Table {
public:
  void insert(std::size_t item, std::uint64_t hash) {
    place({item, hash});
    ++used_;
    if (used_ * 5 < mask() * 3)
      return;
    const std::vector<Slot> old = std::move(slots_);
    std::size_t size = kSmallest;
    while (size <= 4 * used_)
      size *= 2;
    slots_.assign(size, {});
    for (const Slot& slot : old) {
      if (slot.item != kNone)
        place(slot);
    }
  }
  std::vector<std::size_t> items() const {
    std::vector<std::size_t> list;
    for (const Slot& slot : slots_) {
      if (slot.item != kNone)
        list.push_back(slot.item);
    }
    return list;
  }

private:
  static constexpr std::size_t kSmallest = 8;
  static constexpr std::size_t kRun = 9;
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Slot {
    std::size_t item = kNone;
    std::uint64_t hash = 0;
  };

  std::size_t mask() const { return slots_.size() - 1; }

  void place(const Slot& slot) {
    std::size_t at = slot.hash & mask();
    for (std::uint64_t perturb = slot.hash;;) {
      const std::size_t last = at + kRun <= mask() ? at + kRun : at;
      for (std::size_t i = at; i <= last; ++i) {
        if (slots_[i].item == kNone) {
          slots_[i] = slot;
          return;
        }
      }
      perturb >>= 5;
      at = (at * 5 + 1 + perturb) & mask();
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSmallest);
  std::size_t used_ = 0;
};

} // namespace

std::vector<std::size_t> set_order(std::span<const std::string> names, NameKind kind) {
  Table table;
  for (std::size_t i = 0; i < names.size(); ++i)
    table.insert(i, hash_of(names[i], kind));
  return table.items();
}

} // namespace monet::core_cost_detail
