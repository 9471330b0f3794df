// Cycles and energy of transfers, counted by hand and compared with each other.
#include "monet/hardware/chip.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace monet {

namespace {

constexpr OffchipPort kOnePort{.read_bits_per_cycle = 32,
                               .write_bits_per_cycle = 16,
                               .read_pj_per_bit = 2,
                               .write_pj_per_bit = 3};

TEST(MemoryAccess, SharedPortServesBothDirectionsInTurns) {
  EXPECT_EQ(kOnePort.min_cycles(std::int64_t{64}, std::int64_t{32}), 3); // 96 / 32
  EXPECT_EQ(kOnePort.min_cycles(std::int64_t{64}, std::int64_t{33}), 4); // rounded up
  EXPECT_EQ(kOnePort.min_cycles(64.0, 33.0), 97.0 / 32);
  OffchipPort two = kOnePort;
  two.shared = false;
  EXPECT_EQ(two.min_cycles(std::int64_t{64}, std::int64_t{32}), 2); // both in two cycles
  EXPECT_EQ(two.min_cycles(std::int64_t{64}, std::int64_t{33}), 3);
  EXPECT_EQ(two.min_cycles(64.0, 40.0), 2.5);
  EXPECT_EQ(two.energy_pj(64, 40), 64 * 2 + 40 * 3);
}

TEST(MemoryAccess, RowsTakeLongerByTheirOpening) {
  OffchipPort port = kOnePort;
  const PortTransfer plain{Bits{1000}, 0, 10};
  EXPECT_EQ(port.cycles(plain), 100);
  EXPECT_EQ(port.cycles_of_part(plain, 60), 60);
  // One bank, rows of 250 bits, 40 cycles to open one: each of the 4 rows waits for its opening.
  port.rows = DramRows{1, 250, 40};
  EXPECT_EQ(port.cycles(plain), 100);
  const PortTransfer rows{Bits{1000}, 4, 10};
  EXPECT_EQ(port.cycles(rows), 100 + 4 * 40);
  // 60 of 100 cycles carry 600 bits, which begin 3 of the 4 rows.
  EXPECT_EQ(port.rows_of_part(rows, 60), 3);
  EXPECT_EQ(port.cycles_of_part(rows, 60), 60 + 3 * 40);
  // 50 cycles have 2 rows and take 130 cycles; 51 have 3 rows and take 171.
  EXPECT_EQ(port.longest_part(rows, 170, 100), 50);
  EXPECT_EQ(port.longest_part(rows, 171, 100), 51);
  EXPECT_EQ(port.longest_part(rows, 130, 100), 50);
  EXPECT_EQ(port.longest_part(rows, 129, 100), 49);
  EXPECT_EQ(port.longest_part(rows, 171, 20), 20);
}

RC_GTEST_PROP(MemoryAccess, LongestPartFitsAndTheNextDoesNot, ()) {
  OffchipPort port = kOnePort;
  port.rows =
      DramRows{*rc::gen::inRange<std::int64_t>(1, 5), *rc::gen::inRange<std::int64_t>(8, 200),
               *rc::gen::inRange<std::int64_t>(0, 50)};
  const Bits bits{*rc::gen::inRange<std::int64_t>(1, 5000)};
  const std::int64_t speed = *rc::gen::inRange<std::int64_t>(1, 33);
  const std::int64_t least = ceil_div(bits.value, port.rows->row_bits);
  const PortTransfer transfer{bits, least + *rc::gen::inRange<std::int64_t>(0, 20), speed};
  const std::int64_t all = transfer.streaming();
  const std::int64_t length = *rc::gen::inRange<std::int64_t>(0, 2 * port.cycles(transfer) + 1);
  const std::int64_t part = port.longest_part(transfer, length, all);
  RC_ASSERT(part >= 0 && part <= all);
  RC_ASSERT(part == 0 || port.cycles_of_part(transfer, part) <= length);
  RC_ASSERT(part == all || port.cycles_of_part(transfer, part + 1) > length);
}

TEST(MemoryAccess, WordsCountWhole) {
  const WordAccess words{.bits = 64, .energy_pj = 5};
  EXPECT_EQ(words.of(Bits{0}), 0);
  EXPECT_EQ(words.of(Bits{64}), 5);
  EXPECT_EQ(words.of(Bits{65}), 10);
  EXPECT_EQ(WordAccess{}.of(Bits{100}), 0);
}

} // namespace

} // namespace monet
