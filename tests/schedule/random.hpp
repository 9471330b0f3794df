// Random numbers of tests: the same on every machine, unlike those of the standard distributions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace monet::testing {

/// splitmix64 (Steele, Lea, Flood 2014).
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}

  std::uint64_t raw() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// From `least` to `most`, both included.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(raw() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::size_t index(std::size_t size) { return static_cast<std::size_t>(raw() % size); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[index(from.size())];
  }
  template <class T>
  T one_of(std::initializer_list<T> from) {
    return *(from.begin() + static_cast<std::ptrdiff_t>(index(from.size())));
  }

private:
  std::uint64_t state_;
};

} // namespace monet::testing
