// Packs the operands of a matrix product for the inner loops; gemm.cpp calls it.
#include "numerics/packed_operands.hpp"

#include "base/shared/parallel.hpp"
#include "base/shared/transpose.hpp"

#include "monet/base/stop.hpp"
#include "monet/base/units.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace monet {

namespace {

constexpr std::int64_t kRowsOfPiece = 32; ///< rows of A per task

/// Packing task: some rows of A, or a strip of B.
struct PackingTask {
  bool of_a = true;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Calls pack(piece, facts) for all pieces of both operands, on threads, and sets the facts of A
/// and B. Returns false if a piece cannot be packed.
template <class Real, class F>
bool pack_pieces(PackedOperands<Real>& packed, int jobs, F pack) {
  const GemmShape& shape = packed.shape;
  const std::int64_t of_a = ceil_div(shape.m, kRowsOfPiece);
  const std::int64_t of_b = ceil_div(shape.n, kStrip);
  std::vector<OperandFacts> facts(static_cast<std::size_t>(of_a + of_b));
  std::atomic<bool> all = true;
  parallel_for(facts.size(), jobs, [&](std::size_t task) {
    check_stop();
    const auto number = static_cast<std::int64_t>(task);
    PackingTask piece;
    piece.of_a = number < of_a;
    piece.first = piece.of_a ? number * kRowsOfPiece : (number - of_a) * kStrip;
    piece.count = std::min(piece.of_a ? kRowsOfPiece : kStrip,
                           (piece.of_a ? shape.m : shape.n) - piece.first);
    if (!all || !pack(piece, facts[task]))
      all = false;
  });
  const auto middle = facts.begin() + of_a;
  packed.left = merged(std::span(facts.begin(), middle));
  packed.right = merged(std::span(middle, facts.end()));
  return all;
}

/// Calls f(start in B, start in the packed strip) for every row of the strip.
template <class F>
void for_each_row(const GemmShape& shape, const PackingTask& strip, F f) {
  for (std::int64_t q = 0; q < shape.k; ++q)
    f(q * shape.n + strip.first, q * strip.count);
}

/// Converts a strip to single precision; returns false if a number is not exact in it.
bool narrow_strip(const GemmShape& shape, const PackingTask& strip, std::span<const double> b,
                  float* to, const lanes::Kernels& kernels) {
  bool singles = true;
  for_each_row(shape, strip, [&](std::int64_t from, std::int64_t row) {
    singles = kernels.narrow(b.data() + from, to + row, strip.count) && singles;
  });
  return singles;
}

/// Packs pieces and rounds them to blocks along k.
class BlockPacker {
public:
  static constexpr std::int64_t kBlock = 32;

  BlockPacker(PackedOperands<float>& packed, std::span<const double> a, std::span<const double> b,
              const NumberFormat& element, Instructions instructions)
      : packed_(packed), a_(a), b_(b), usual_(block_run(element)), blocks_(packed.shape.k / kBlock),
        instructions_(instructions), kernels_(kernels_of(instructions)) {
    packed.a_scales.resize(static_cast<std::size_t>(packed.shape.m * blocks_));
    packed.b_scales.resize(static_cast<std::size_t>(packed.shape.n * blocks_));
  }

  bool pack_rows(const PackingTask& piece, OperandFacts& facts) const {
    const std::int64_t k = packed_.shape.k;
    float* to = packed_.a.get() + piece.first * k;
    if (!kernels_.narrow(a_.data() + piece.first * k, to, piece.count * k))
      return false;
    const std::vector<float> scales = round(to, piece.count * k);
    std::copy(scales.begin(), scales.end(), packed_.a_scales.begin() + piece.first * blocks_);
    facts = facts_of({to, static_cast<std::size_t>(piece.count * k)}, instructions_);
    return true;
  }

  /// Rounds a strip of B; its columns are stored as rows during rounding.
  bool pack_strip(const PackingTask& piece, OperandFacts& facts) const {
    const auto [m, n, k] = packed_.shape;
    float* to = packed_.b.get() + piece.first * k;
    if (!narrow_strip(packed_.shape, piece, b_, to, kernels_))
      return false;
    std::vector<float> columns(static_cast<std::size_t>(piece.count * k));
    transpose(to, k, piece.count, columns.data());
    const std::vector<float> scales = round(columns.data(), piece.count * k);
    transpose(columns.data(), piece.count, k, to);
    for (std::int64_t j = 0; j < piece.count; ++j) {
      for (std::int64_t block = 0; block < blocks_; ++block)
        packed_.b_scales[static_cast<std::size_t>(block * n + piece.first + j)] =
            static_cast<double>(scales[static_cast<std::size_t>(j * blocks_ + block)]);
    }
    facts = facts_of(columns, instructions_);
    return true;
  }

private:
  /// Rounds numbers to elements in place and returns the scales.
  std::vector<float> round(float* numbers, std::int64_t count) const {
    std::vector<float> scales(static_cast<std::size_t>(count / kBlock));
    lanes::BlockRun run = usual_;
    run.in = numbers;
    run.out = numbers;
    run.scales = scales.data();
    run.blocks = count / kBlock;
    run.elements = true;
    kernels_.blocks(run);
    return scales;
  }

  PackedOperands<float>& packed_;
  std::span<const double> a_;
  std::span<const double> b_;
  lanes::BlockRun usual_;
  std::int64_t blocks_;
  Instructions instructions_;
  const lanes::Kernels& kernels_;
};

} // namespace

std::optional<PackedOperands<float>> pack_singles(const GemmShape& shape, std::span<const double> a,
                                                  std::span<const double> b, const Mac& mac,
                                                  const GemmOptions& options) {
  PackedOperands<float> packed(shape, mac.lanes);
  const lanes::Kernels& kernels = kernels_of(options.instructions);
  const auto pack = [&](const PackingTask& piece, OperandFacts& facts) {
    float* to = (piece.of_a ? packed.a.get() : packed.b.get()) + piece.first * shape.k;
    const bool singles =
        piece.of_a ? kernels.narrow(a.data() + piece.first * shape.k, to, piece.count * shape.k)
                   : narrow_strip(shape, piece, b, to, kernels);
    if (singles)
      facts = read_operands({to, static_cast<std::size_t>(piece.count * shape.k)}, mac, 1,
                            options.instructions);
    return singles;
  };
  return pack_pieces(packed, options.jobs, pack) ? std::optional(std::move(packed)) : std::nullopt;
}

PackedOperands<double> pack_doubles(const GemmShape& shape, std::span<const double> a,
                                    std::span<const double> b, const Mac& mac,
                                    const GemmOptions& options) {
  PackedOperands<double> packed(shape, mac.lanes);
  const auto read = [&](const double* from, double* to, std::int64_t count) {
    std::transform(from, from + count, to, [&](double x) { return decoded_operand(mac, x); });
  };
  const auto pack = [&](const PackingTask& piece, OperandFacts& facts) {
    double* to = (piece.of_a ? packed.a.get() : packed.b.get()) + piece.first * shape.k;
    if (piece.of_a)
      read(a.data() + piece.first * shape.k, to, piece.count * shape.k);
    else
      for_each_row(shape, piece, [&](std::int64_t from, std::int64_t row) {
        read(b.data() + from, to + row, piece.count);
      });
    facts = facts_of(std::span<const double>(to, static_cast<std::size_t>(piece.count * shape.k)));
    return true;
  };
  pack_pieces(packed, options.jobs, pack);
  return packed;
}

std::optional<PackedOperands<float>>
pack_vector_blocks(const GemmShape& shape, std::span<const double> a, std::span<const double> b,
                   const NumberFormat& element, const GemmOptions& options) {
  PackedOperands<float> packed(shape, BlockPacker::kBlock);
  const BlockPacker packer(packed, a, b, element, options.instructions);
  const auto pack = [&](const PackingTask& piece, OperandFacts& facts) {
    return piece.of_a ? packer.pack_rows(piece, facts) : packer.pack_strip(piece, facts);
  };
  return pack_pieces(packed, options.jobs, pack) ? std::optional(std::move(packed)) : std::nullopt;
}

} // namespace monet
