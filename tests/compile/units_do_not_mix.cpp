// Compiled twice: as it stands it must compile, with MUST_FAIL it must not.
#include "monet/base/ids.hpp"
#include "monet/base/units.hpp"

int main() {
  monet::Cycles cycles{3};
  const monet::Bits bits{4};
  cycles += monet::Cycles{1};
#if MUST_FAIL == 1
  cycles += bits;
#elif MUST_FAIL == 2
  const bool same = monet::TensorId(std::size_t{1}) == monet::OpId(std::size_t{1});
  return same;
#elif MUST_FAIL == 3
  const monet::Energy energy = monet::Picojoules{1.0};
  return static_cast<int>(energy.units);
#endif
  return static_cast<int>(bits.value - cycles.value);
}
