// How one or both products run, with traffic and memory in closed form for any tiles.
#pragma once

#include "core_cost/joint_mapping/problem.hpp"

#include <array>
#include <cstdint>

namespace monet::joint_mapping {

enum class Form {
  single,  ///< one product alone
  shared,  ///< common outer loops; inside, one product's rest, then the other's
  lockstep ///< two orders, one tile of each in turn
};

/// How products fetch dY.
enum class DyUse {
  separate, ///< each product for itself, by its flag `once`
  block,    ///< once per iteration of the shared loops, for both: their part of dY stays meanwhile
  once,     ///< once at all: it stays as long as the loop over k runs. In `single` and `lockstep`
            ///< all of it stays all the time
  present   ///< `single` only: it is there, all of it, since the product before
};

/// Structure of a plan: everything except the sizes of tiles.
struct Structure {
  Form form = Form::single;
  int product = kDx; ///< of `single`
  int shared = 0;    ///< common loops of `shared`, 1 to 3
  bool dw_first = false;
  std::array<std::array<int, kDims>, 2> order{{{0, 1, 2}, {0, 1, 2}}}; ///< outermost first
  /// By product and place: true if every element is moved once and held while the loop over the
  /// dimension it lacks runs; false if it is moved in every step.
  std::array<std::array<bool, 3>, 2> once{};
  DyUse dy = DyUse::separate;
  /// Without time (TileTiming::none): order of the elements inside a tile, outermost first, for
  /// operands moved in every step. Only the data of one such loop iteration are held.
  std::array<std::array<int, kDims>, 2> inner{};
  bool sliced = false;
  std::uint32_t stands = ~0U; ///< bit by Box::cuts: stands_for_others()

  bool uses(int p) const { return form != Form::single || product == p; }
  int first() const { return form == Form::single ? product : dw_first ? kDw : kDx; }
};

using Tile = std::array<std::int64_t, kDims>;

/// State of the number of parts of a dimension, in base 3.
inline constexpr unsigned kOpen = 0;
inline constexpr unsigned kWhole = 1; ///< a single part
inline constexpr unsigned kCut = 2;   ///< several parts
inline constexpr std::array<unsigned, kDims> kPlaceOfCut{1, 3, 9};
inline constexpr unsigned kCuts = 27;

/// Position of a loop over a dimension in the order of a product.
int position(const Structure& structure, int product, int dim);

/// Memory and traffic that depend on the structure alone.
class Shape {
public:
  Shape(const PairProblem& problem, const Structure& structure);

  /// Bits in the memory with tiles of these sizes.
  std::int64_t held(const Tile& tile) const;
  /// Bits in the memory as a floating number: exact below 2^53, and above it where representable.
  double held(const std::array<double, kDims>& tile) const;
  /// Traffic in 1/256 bit for given numbers of parts by dimension; exact for parts of any size.
  std::int64_t moved(const std::array<std::int64_t, kDims>& parts) const {
    return all_.base + all_.more[0] * (parts[0] - 1) + all_.more[1] * (parts[1] - 1) +
           all_.more[2] * (parts[2] - 1);
  }

private:
  struct Linear {
    std::int64_t base = 0;
    std::array<std::int64_t, kDims> more{}; ///< per part of a dimension beyond the first
  };
  enum class Extent : std::uint8_t { tile, full, unit };
  struct Term {
    std::int64_t bits = 0;
    std::array<std::uint8_t, 2> dims{};
    std::array<Extent, 2> extents{};
    std::uint8_t group = 0; ///< 0: always, 1: while dX runs, 2: while dW runs
  };

  template <class Number>
  Number sum_of_terms(const std::array<Number, kDims>& tile) const;
  void add_term(BackwardOperand operand, std::int64_t bits, int group,
                const std::array<Extent, kDims>& extents);
  void hold_own(const Structure& structure, int product, int place);
  void hold_dy(const Structure& structure);
  void count_traffic(const Structure& structure);

  const PairProblem* problem_;
  std::array<Term, 8> terms_{};
  std::size_t size_ = 0;
  Linear all_;
};

/// Traffic in 1/256 bit.
struct FineTraffic : BackwardTraffic {
  /// Share of `dy_read` that each product's steps certainly read.
  std::array<std::int64_t, 2> dy_of{};
  std::int64_t of(int product) const;
};
FineTraffic traffic_of(const PairProblem& problem, const Structure& structure,
                       const std::array<std::int64_t, kDims>& parts);

/// Work of one position of the loops: its cycles, reads and writes.
struct Step {
  std::int64_t cycles = 0;
  std::int64_t read = 0; ///< 1/256 bit
  std::int64_t write = 0;
};

/// The longer of computing and of moving the next step's reads and the previous step's writes, in 1
/// / cycle_units of a cycle.
Wide longer(const PairProblem& problem, std::int64_t cycles, std::int64_t reads,
            std::int64_t writes);

/// First and last steps of a plan, which may coincide, and their neighbours (without work if
/// missing).
struct PlanEnds {
  Step first;
  Step second;
  Step last_but_one;
  Step last;
};

/// Structure with tiles.
class Plan {
public:
  Plan(const PairProblem& problem, const Structure& structure, const Tile& tile);

  const std::array<std::int64_t, kDims>& parts() const { return parts_; }
  /// Sum over steps of the longer of computing and of moving the next step's reads and the previous
  /// step's writes, in 1 / cycle_units of a cycle. Equal steps are counted together; in `lockstep`,
  /// only consecutive ones.
  Wide time() const;
  /// Ends of a plan with one product.
  PlanEnds ends() const;
  /// Steps of one product.
  double steps() const;
  Wide compute_cycles() const;

private:
  class Walk;

  struct Position {
    int product = kDx;
    std::array<std::int64_t, kDims> index{}; ///< by dimension
  };

  Step step(const Position& place) const;
  const Step& known(const Position& place) const;
  void read_write(Step& step, const Position& place, int operand_place, unsigned last) const;
  bool reads(const Position& place, int operand_place) const;
  bool reads_dy(const Position& place) const;
  bool first_touch(const Position& place) const;
  /// Advances to the next step, or the previous one. Returns false, at the other end, after the
  /// last one.
  template <bool kForward>
  bool advance(Position& place) const;
  Wide longer(std::int64_t cycles, std::int64_t reads, std::int64_t writes) const {
    return joint_mapping::longer(problem_, cycles, reads, writes);
  }
  Wide not_hidden(const Step& first, const Step& last) const;
  Wide grouped() const;
  Wide grouped(int product) const;
  std::int64_t lag(int product, std::int64_t m, std::int64_t n) const;
  Wide walked() const;

  const PairProblem& problem_;
  const Structure& structure_;
  std::array<std::int64_t, kDims> parts_{};
  std::array<std::array<std::int64_t, 8>, 2> cycles_{}; ///< by product and which indices are last
  std::array<std::array<std::int64_t, 8>, 5> elements_{};
  std::array<std::array<int, kDims>, 2> position_{};
  std::array<std::array<std::int64_t, kDims>, 2> stride_{}; ///< of steps, in `lockstep`
  mutable std::array<Step, 128> known_;                     ///< cache by kind of step
  mutable std::array<bool, 128> is_known_{};
};

} // namespace monet::joint_mapping
