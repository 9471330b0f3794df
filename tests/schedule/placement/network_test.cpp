// Bookings computed by hand. The off-chip port and its link give 64 bits per cycle unless a test
// says otherwise.
#include "schedule/placement/network.hpp"
#include "schedule/small_steps.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

using testing::make_chip;

CoreId core(std::size_t i) {
  return CoreId(i);
}
TransferRequest request(std::size_t from, std::size_t to, std::int64_t bits) {
  return {.from = core(from), .to = core(to), .bits = {bits}};
}
using Span = std::pair<std::int64_t, std::int64_t>;
Span book(Network& network, const TransferRequest& wanted, std::int64_t ready) {
  const std::int64_t arrival = network.arrival(wanted, ready);
  const auto pieces = network.reserve(wanted, ready);
  EXPECT_EQ(pieces.back().end, arrival);
  return {pieces.front().start, pieces.back().end};
}

/// Core 0 reaches the off-chip memory (core 3) over a link of 16 bits per cycle, cores 1 and 2 over
/// links of 64.
Chip one_narrow_link() {
  Chip chip = make_chip({.cores = 3});
  chip.links.clear();
  for (std::size_t i = 0; i < 3; ++i) {
    chip.links.push_back({"", {core(3), core(i)}, LinkReach::forward, i == 0 ? 16 : 64, 2});
    chip.links.push_back({"", {core(i), core(3)}, LinkReach::forward, i == 0 ? 16 : 64, 2});
  }
  make_routes(chip);
  return chip;
}

TEST(Network, a_narrow_link_leaves_the_rest_of_the_port_to_others) {
  const Chip chip = one_narrow_link();
  Network network(chip);
  EXPECT_EQ(book(network, request(3, 0, 1600), 0), Span(0, 100)); // takes 16 of 64
  // 48 are free: 960 bits take 20 cycles; at the full 64, from 100 on, they would end at 115.
  EXPECT_EQ(book(network, request(3, 1, 960), 0), Span(0, 20));
  // 9600 bits end at 220 with 48 from 20 on, and at 250 with 64 from 100 on.
  EXPECT_EQ(book(network, request(3, 1, 9600), 20), Span(20, 220));
  // Nothing is left before 100; from then on 16 until 220.
  EXPECT_EQ(book(network, request(3, 0, 32), 0), Span(100, 102));

  Network exclusive(chip, {.share_links = false});
  EXPECT_EQ(book(exclusive, request(3, 0, 1600), 0), Span(0, 100));
  EXPECT_EQ(book(exclusive, request(3, 1, 960), 0), Span(100, 115));
}

TEST(Network, waits_for_its_full_speed_when_it_ends_sooner_so) {
  const Chip chip = one_narrow_link();
  Network network(chip);
  EXPECT_EQ(book(network, request(3, 1, 640), 0), Span(0, 10));
  EXPECT_EQ(book(network, request(3, 0, 16), 10), Span(10, 11));
  // With the 48 bits left from 10 on: [10, 30). At full speed from 11 on: [11, 26).
  EXPECT_EQ(book(network, request(3, 2, 960), 10), Span(11, 26));
}

TEST(Network, goes_in_pieces_through_gaps_of_others) {
  const Chip chip = make_chip({.cores = 2});
  Network network(chip);
  EXPECT_EQ(book(network, request(2, 0, 64 * 50), 100), Span(100, 150));
  EXPECT_EQ(book(network, request(2, 0, 64 * 50), 250), Span(250, 300));
  EXPECT_EQ(book(network, request(2, 0, 64 * 10), 310), Span(310, 320));
  // 301 cycles: 100 before the first, 100 between them, not the 10 before the third, 101 after it;
  // in one piece it would end at 621. The last bit takes a cycle.
  const TransferRequest wanted = request(2, 1, 64 * 300 + 1);
  EXPECT_EQ(network.arrival(wanted, 0), 421);
  const auto pieces = network.reserve(wanted, 0);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(Span(pieces[0].start, pieces[0].end), Span(0, 100));
  EXPECT_EQ(Span(pieces[1].start, pieces[1].end), Span(150, 250));
  EXPECT_EQ(Span(pieces[2].start, pieces[2].end), Span(320, 421));
  EXPECT_EQ(pieces[2].bits, Bits{64 * 100 + 1});
  // 301 words are written at 16 pJ, however many pieces there are.
  double energy = 0;
  for (const Booking& piece : pieces)
    energy += piece.onchip_energy.picojoules().value;
  EXPECT_DOUBLE_EQ(energy, 301 * 16);

  Network whole(chip, {.pieces = false});
  book(whole, request(2, 0, 64 * 50), 100);
  EXPECT_EQ(book(whole, request(2, 1, 64 * 200), 0), Span(150, 350));
}

TEST(Network, short_gaps_are_left_alone) {
  const Chip chip = make_chip({.cores = 2});
  Network network(chip);
  EXPECT_EQ(book(network, request(2, 0, 64 * 50), 31), Span(31, 81));
  EXPECT_EQ(book(network, request(2, 1, 64 * 100), 0), Span(81, 181));
}

TEST(Network, short_transfers_share_a_cycle) {
  const Chip chip = make_chip({.cores = 2, .link_bandwidth = 64});
  Network network(chip);
  EXPECT_EQ(book(network, request(0, 1, 30), 0), Span(0, 1));
  EXPECT_EQ(book(network, request(0, 1, 30), 0), Span(0, 1));
  EXPECT_EQ(book(network, request(0, 1, 30), 0), Span(1, 2));
}

TEST(Network, transfers_between_cores_leave_the_port_its_width) {
  // One bus for all, on which the port's 64 bits go, too.
  const auto bus = [](std::int64_t width) {
    Chip chip = make_chip({.cores = 2});
    chip.links = {{"bus", {core(0), core(1), core(2)}, LinkReach::any_pair, width}};
    make_routes(chip);
    return chip;
  };
  const Chip wide = bus(192);
  Network network(wide);
  EXPECT_EQ(book(network, request(0, 1, 1280), 0), Span(0, 10)); // with 128 of 192
  EXPECT_EQ(book(network, request(2, 0, 640), 0), Span(0, 10));  // beside it
  EXPECT_EQ(network.duration(request(0, 1, 1280)), 10);

  const Chip narrow = bus(127); // less than twice the port: what is left would be slow
  Network full(narrow);
  EXPECT_EQ(book(full, request(0, 1, 1270), 0), Span(0, 10));
  EXPECT_EQ(book(full, request(2, 0, 640), 0), Span(10, 20));

  Network exclusive(wide, {.share_links = false});
  EXPECT_EQ(book(exclusive, request(0, 1, 1920), 0), Span(0, 10));
}

TEST(Network, takes_a_second_way_when_the_first_is_busy) {
  // 0 to 2 by way of 1 or of 3.
  Chip chip = make_chip({.cores = 4});
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 2}, {0, 3}, {3, 2}}) {
    chip.links.push_back({"",
                          {core(static_cast<std::size_t>(a)), core(static_cast<std::size_t>(b))},
                          LinkReach::forward,
                          32});
  }
  make_routes(chip);
  Network network(chip);
  const Booking first = network.reserve(request(0, 2, 320), 0).front();
  const Booking second = network.reserve(request(0, 2, 320), 0).front();
  EXPECT_EQ(Span(first.start, first.end), Span(0, 10));
  EXPECT_EQ(Span(second.start, second.end), Span(0, 10));
  EXPECT_EQ(network.routes()[first.route].links,
            (std::vector<LinkId>{LinkId(std::size_t{1}), LinkId(std::size_t{2})}));
  EXPECT_EQ(network.routes()[second.route].links,
            (std::vector<LinkId>{LinkId(std::size_t{3}), LinkId(std::size_t{4})}));
  EXPECT_EQ(book(network, request(0, 2, 320), 0), Span(10, 20));
}

TEST(Network, several_receivers_are_fed_by_one_read) {
  // A chain 0 - 1 - 2: the data for both pass the link 0>1 once.
  Chip chip = make_chip({.cores = 3});
  chip.links.push_back({"0>1", {core(0), core(1)}, LinkReach::forward, 32, 4});
  chip.links.push_back({"1>2", {core(1), core(2)}, LinkReach::forward, 16, 2});
  make_routes(chip);
  Network network(chip);
  const std::vector<CoreId> also{core(1)};
  TransferRequest both = request(0, 2, 320);
  both.also = also;
  EXPECT_EQ(network.arrival(both, 0), 20);
  const Booking booking = network.reserve(both, 0).front();
  EXPECT_EQ(Span(booking.start, booking.end), Span(0, 20)); // at 16, the narrower link's speed
  const Route& route = network.routes()[booking.route];
  EXPECT_EQ(route.to, (std::vector<CoreId>{core(1), core(2)}));
  EXPECT_EQ(route.links.size(), 2U);
  // 320 bits are 5 words of 64: read once at 8 pJ, written twice at 16 pJ. 320 bits take 10 cycles
  // of 4 pJ of the first link and 20 of 2 pJ of the second.
  EXPECT_DOUBLE_EQ(booking.onchip_energy.picojoules().value, 5 * 8 + 2 * 5 * 16);
  EXPECT_DOUBLE_EQ(booking.link_energy.picojoules().value, 10 * 4 + 20 * 2);
  // Half of the first link is left.
  EXPECT_EQ(book(network, request(0, 1, 160), 0), Span(0, 10));
}

TEST(Network, the_offchip_memory_is_read_once_for_all_cores) {
  const Chip chip = make_chip({.cores = 4});
  Network network(chip);
  const std::vector<CoreId> also{core(1), core(2), core(3)};
  TransferRequest all = request(4, 0, 640);
  all.also = also;
  const Booking booking = network.reserve(all, 0).front();
  EXPECT_EQ(Span(booking.start, booking.end), Span(0, 10));
  EXPECT_DOUBLE_EQ(booking.offchip_energy.picojoules().value, 640 * 8.0 / 64);
  EXPECT_DOUBLE_EQ(booking.onchip_energy.picojoules().value, 4 * 10 * 16);
}

TEST(Network, without_free_routing_nothing_goes_further_than_two_hops) {
  Chip chip = make_chip({.cores = 4});
  for (std::size_t i = 0; i < 3; ++i)
    chip.links.push_back({"", {core(i), core(i + 1)}, LinkReach::forward, 32});
  make_routes(chip);
  EXPECT_TRUE(Network(chip).direct(core(0), core(3)));
  Network near(chip, {.free_routing = false});
  EXPECT_TRUE(near.direct(core(0), core(2)));
  EXPECT_FALSE(near.direct(core(0), core(3)));
}

TEST(Network, says_between_which_cores_there_is_no_route) {
  const Chip chip = make_chip({.cores = 2});
  Network network(chip);
  EXPECT_FALSE(network.direct(core(0), core(1)));
  EXPECT_THROW(network.reserve(request(0, 1, 1), 0), InfeasibleError);
}

} // namespace
} // namespace monet
