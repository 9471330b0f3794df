// Which of two orders of the temporal loops an enumeration in ZigZag's sequence meets first,
// without enumerating.
//
// The sequence is that of Williams (2009), "Loopless generation of multiset permutations using a
// constant number of variables by prefix shifts": cool-lex order, rotated so that the
// non-increasing arrangement comes first. Among the others, orders are grouped by their scut (the
// shortest suffix that is not a suffix of the non-increasing arrangement): by the scut's first
// symbol, then longer scuts first, then recursively by what stands before the scut.
#pragma once

#include <cstdint>
#include <span>

namespace monet::core_cost_detail {

/// True when the sequence meets `a` before `b`, arrangements of the same symbols.
bool enumerated_before(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

/// Compares two beginnings with equal continuations, for any continuation that makes neither
/// arrangement the non-increasing one.
bool begins_before(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

/// The arrangement that the sequence starts with.
bool enumerated_first(std::span<const std::uint8_t> order);

} // namespace monet::core_cost_detail
