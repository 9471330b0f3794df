// Typed indices, one type for each kind of object, so that a TensorId cannot index operators.
// Example:
//   constexpr OpId next_of(OpId op) {
//     return OpId{op.index() + 1};
//   }
//   static_assert(next_of(OpId{3}) == OpId{4}); // next_of(TensorId{3}) does not compile
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace monet {

inline constexpr std::uint32_t kNone = 0xFFFFFFFF; ///< value for "no index"

template <class Tag>
struct Id {
  std::uint32_t value{};

  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value(static_cast<std::uint32_t>(index)) {}
  constexpr std::size_t index() const { return value; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using TensorId = Id<struct TensorTag>;
using OpId = Id<struct OpTag>;
using CoreId = Id<struct CoreTag>;
using LinkId = Id<struct LinkTag>;
using TileId = Id<struct TileTag>;

} // namespace monet

template <class Tag>
struct std::hash<monet::Id<Tag>> {
  std::size_t operator()(monet::Id<Tag> id) const noexcept { return id.value; }
};
