// Products by an emulated multiply-accumulate unit; kernels/product.cpp calls it.
#include "execute/walk/product.hpp"
#include "execute/walk/product_plan.hpp"
#include "numerics/shared/exact_sum.hpp"
#include "numerics/shared/mac_engine.hpp"

#include "monet/execute/execute.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace monet {

namespace {

/// Product of one nest on one emulated unit.
template <class Real>
class UnitWalk {
public:
  UnitWalk(const ProductPlan& plan, const Mac& unit, const MacEngine& engine, const Real* output)
      : plan_(plan), unit_(unit), engine_(engine), output_(output) {}

  void operator()(const FactorPointers<Real>& at, const ProductBlock& block) const {
    if (plan_.left_is_vector == plan_.right_is_vector) {
      for (std::int64_t row = block.low; row < block.high; ++row)
        multiply_pair(at, row, block);
      return;
    }
    multiply_rows(at, block);
  }

private:
  /// Keys of the outputs of some rows, one after the other.
  struct Keys {
    std::vector<std::uint32_t> low;
    std::vector<std::uint32_t> high;
  };
  Keys keys_of(const Real* first, std::int64_t rows) const {
    Keys keys;
    if (!engine_.is_random())
      return keys;
    const auto width = static_cast<std::size_t>(plan_.vector_size);
    keys.low.resize(width * static_cast<std::size_t>(rows));
    keys.high.resize(keys.low.size());
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto output = static_cast<std::uint64_t>(first + row * plan_.by_row.output - output_);
      const std::size_t begin = static_cast<std::size_t>(row) * width;
      fill_keys(unit_.rounding.seed, output, std::span(keys.low).subspan(begin, width),
                std::span(keys.high).subspan(begin, width));
    }
    return keys;
  }

  void multiply_rows(const FactorPointers<Real>& at, const ProductBlock& block) const {
    const bool swapped = plan_.left_is_vector; // the other factor is the scalar one
    const auto side = [&](const Strides& strides, bool scalar) {
      return scalar != swapped ? strides.left : strides.right;
    };
    const Real* scalars = swapped ? at.right : at.left;
    lanes::Panel<Real> panel;
    panel.rows = block.high - block.low;
    panel.steps = plan_.reduced_size;
    panel.columns = plan_.vector_size;
    panel.chunk = unit_.lanes;
    panel.out = at.output + block.low * plan_.by_row.output;
    panel.out_row = plan_.by_row.output;
    panel.scalar_row = side(plan_.by_row, true);
    panel.scalar_step = side(plan_.by_reduced, true);
    panel.scalars = scalars + block.low * panel.scalar_row;
    panel.vectors = swapped ? at.left : at.right;
    panel.vector_step = side(plan_.by_reduced, false);
    const Keys keys = keys_of(panel.out, panel.rows);
    panel.low_keys = keys.low.data();
    panel.high_keys = keys.high.data();
    panel.key_row = plan_.vector_size;
    panel.first_step = static_cast<std::uint32_t>(block.first_step);
    engine_.panel(panel);
  }

  /// Both factors have the vector loop (depth-wise convolutions), or neither.
  void multiply_pair(const FactorPointers<Real>& at, std::int64_t row,
                     const ProductBlock& block) const {
    lanes::Pairs<Real> pairs;
    pairs.out = at.output + row * plan_.by_row.output;
    pairs.left = at.left + row * plan_.by_row.left;
    pairs.right = at.right + row * plan_.by_row.right;
    pairs.left_step = plan_.by_reduced.left;
    pairs.right_step = plan_.by_reduced.right;
    pairs.left_varies = plan_.left_is_vector;
    pairs.right_varies = plan_.right_is_vector;
    pairs.steps = plan_.reduced_size;
    pairs.columns = plan_.vector_size;
    pairs.chunk = unit_.lanes;
    const Keys keys = keys_of(pairs.out, 1);
    pairs.low_keys = keys.low.data();
    pairs.high_keys = keys.high.data();
    pairs.first_step = static_cast<std::uint32_t>(block.first_step);
    engine_.pairs(pairs);
  }

  const ProductPlan& plan_;
  const Mac& unit_;
  const MacEngine& engine_;
  const Real* output_;
};

/// Walks products one by one, for nests without a suitable loop. Exact sums have unlimited width,
/// one for every output.
class PlainWalk {
public:
  PlainWalk(const ProductPlan& plan, const Mac& unit, const double* output, std::size_t outputs)
      : plan_(plan), unit_(unit), chunk_(unit.lanes), output_(output),
        sums_(unit_.is_exact() ? outputs : 0) {}

  void operator()(const FactorPointers<double>& at, const ProductBlock& block) {
    for (std::int64_t row = block.low; row < block.high; ++row) {
      for (std::int64_t v = 0; v < plan_.vector_size; ++v) {
        for (std::int64_t k = 0; k < plan_.reduced_size; k += chunk_)
          add(at, row, v, k, static_cast<std::uint64_t>(block.first_step + k));
      }
    }
  }

  /// Rounds exact sums.
  void finish(double* output) const {
    for (std::size_t i = 0; i < sums_.size(); ++i)
      output[i] = round_to(kSinglePrecision, sums_[i].odd());
  }

private:
  /// The chunk of products from k on, the first of which is the step-th of its output.
  void add(const FactorPointers<double>& at, std::int64_t row, std::int64_t v, std::int64_t k,
           std::uint64_t step) {
    double& out = at.output[row * plan_.by_row.output + v];
    const auto index = static_cast<std::uint64_t>(&out - output_);
    const std::int64_t end = std::min(plan_.reduced_size, k + chunk_);
    const double* left = at.left + row * plan_.by_row.left + (plan_.left_is_vector ? v : 0);
    const double* right = at.right + row * plan_.by_row.right + (plan_.right_is_vector ? v : 0);
    const auto [of_output, of_left, of_right] = plan_.by_reduced;
    const auto add_all = [&](ExactSum& sum) {
      for (std::int64_t q = k; q < end; ++q)
        unit_.add_product(sum, left[q * of_left], right[q * of_right], index,
                          step + static_cast<std::uint64_t>(q - k));
    };
    if (unit_.is_exact()) {
      add_all(sums_[index]);
    } else if (chunk_ == 1) {
      const double p = unit_.product(left[k * of_left], right[k * of_right], index, step);
      out = unit_.sum(out, p, index, step);
    } else {
      ExactSum chunk;
      add_all(chunk);
      out = unit_.add_chunk(out, chunk, 1, index, step);
    }
  }

  const ProductPlan& plan_;
  PlainUnit unit_;
  std::int64_t chunk_;
  const double* output_;
  std::vector<ExactSum> sums_;
};

/// A factor as the multiplier reads it, packed: a copy where that changes anything.
class ReadFactor {
public:
  ReadFactor(const ProductPlan& plan, std::size_t k, const std::vector<float>& plain,
             const Emulation& emulation)
      : numbers_(plain.data()), count_(plain.size()) {
    const auto& [unit, jobs, instructions, gradients] = emulation;
    const bool reads = unit.operands || unit.multiplier >= Multiplier::cfg1;
    if (!reads && !plan.moved[k]) {
      facts_ = facts_of(plain, instructions);
      return;
    }
    copy_ = pack(plan, k, plain, jobs);
    numbers_ = copy_.get();
    facts_ = read_operands({copy_.get(), count_}, unit, jobs, instructions);
  }

  const OperandFacts& facts() const { return facts_; }
  const float* numbers() const { return numbers_; }
  std::vector<double> widened() const { return {numbers_, numbers_ + count_}; }

private:
  std::unique_ptr<float[]> copy_;
  const float* numbers_;
  std::size_t count_;
  OperandFacts facts_;
};

void count_gradient(const Tensor& tensor, const std::vector<float>& before, const ReadFactor& after,
                    GradientRounding& gradients) {
  if (is_gradient(tensor.kind))
    gradients.add(nonzeros(before), nonzeros({after.numbers(), before.size()}));
}

} // namespace

void emulate_product(const Graph& graph, const LoopNest& nest, std::vector<float>& output,
                     const std::vector<float>& left, const std::vector<float>& right,
                     const Emulation& emulation) {
  if (iterations(nest) == 0 || output.empty())
    return;
  check_factors(graph, nest, output.size(), left.size(), right.size());
  const Mac& unit = emulation.unit;
  const int jobs = emulation.jobs;
  const ProductPlan plan = plan_product(graph, nest);
  const ReadFactor a(plan, 1, left, emulation);
  const ReadFactor b(plan, 2, right, emulation);
  if (unit.operands && emulation.gradients != nullptr) {
    count_gradient(graph.tensor(nest.operands[1].tensor), left, a, *emulation.gradients);
    count_gradient(graph.tensor(nest.operands[2].tensor), right, b, *emulation.gradients);
  }
  ProductRange range;
  range.left = a.facts();
  range.right = b.facts();
  range.steps = max_products(plan);
  range.chunk = unit.lanes;
  const MacEngine engine(unit, range, emulation.instructions);
  if (engine.is_single()) {
    const auto run = [&](float* out) {
      for_each_block(plan, FactorPointers<float>{out, a.numbers(), b.numbers()}, jobs,
                     UnitWalk<float>(plan, unit, engine, out));
    };
    if (plan.moved[0])
      add_packed<float>(plan, output, jobs, run);
    else
      run(output.data());
    return;
  }
  const std::vector<double> x = a.widened();
  const std::vector<double> y = b.widened();
  add_packed<double>(plan, output, jobs, [&](double* out) {
    const FactorPointers<double> start{out, x.data(), y.data()};
    if (engine.is_double()) {
      for_each_block(plan, start, jobs, UnitWalk<double>(plan, unit, engine, out));
      return;
    }
    PlainWalk walk(plan, unit, out, output.size());
    for_each_block(plan, start, jobs, std::ref(walk));
    walk.finish(out);
  });
}

} // namespace monet
