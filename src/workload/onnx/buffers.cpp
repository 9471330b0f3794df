// Classifies initialisers as buffers by their numbers; kinds.cpp calls it. Rules are ordered from
// most to least certain. Parameters are initialised randomly, to a single number, or to an
// identity; buffers show computed structure.
#include "workload/onnx/model.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

namespace monet::onnx_file {

namespace {

/// Larger magnitudes stand for infinity.
constexpr double kInfinite = 1e4;
/// Error of a single-precision sine whose argument is several thousand.
constexpr double kSineTolerance = 2e-3;
constexpr double kSequenceTolerance = 1e-5;

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

// --- numbers ---

/// Numbers of a tensor and its axes longer than 1.
struct Numbers {
  const std::vector<double>& all;
  Integers axes; ///< lengths above 1

  std::size_t size() const { return all.size(); }
  std::int64_t last(std::size_t i) const { return axes[axes.size() - 1 - i]; }
};

bool all_equal(const std::vector<double>& numbers) {
  return std::ranges::all_of(numbers, [&](double number) { return number == numbers.front(); });
}

/// Whether an operator with a trained weight reads the value as its weight; such a value is a
/// parameter unless it is a fixed filter.
bool is_weight_of_layer(const std::vector<Use>& uses) {
  return std::ranges::any_of(uses, [](const Use& use) {
    return (use.input >= 1 && use.node->op_type.is_one_of({ops::Conv, ops::ConvTranspose, ops::Gemm,
                                                           ops::LSTM, ops::GRU, ops::RNN})) ||
           (use.input == 0 && use.node->op_type == ops::Gather);
  });
}

bool holds_infinities(const Numbers& numbers) {
  return std::ranges::any_of(numbers.all,
                             [](double number) { return !(std::abs(number) < kInfinite); });
}

/// Whether every matrix of the last two axes satisfies `test(elements, order)`.
bool every_matrix(const Numbers& numbers,
                  const std::function<bool(const double*, std::int64_t)>& test) {
  const std::int64_t n = numbers.last(0);
  const auto matrix = static_cast<std::size_t>(n * n);
  for (std::size_t at = 0; at < numbers.size(); at += matrix) {
    if (!test(numbers.all.data() + at, n))
      return false;
  }
  return true;
}

bool is_square(const Numbers& numbers, std::int64_t least) {
  return numbers.axes.size() >= 2 && numbers.last(0) == numbers.last(1) && numbers.last(0) >= least;
}

/// Whether elements off the diagonal are zero. Some weights are initialised to identities.
bool is_diagonal(const double* matrix, std::int64_t n) {
  for (std::int64_t i = 0; i < n * n; ++i) {
    if (i / n != i % n && matrix[i] != 0.0)
      return false;
  }
  return true;
}

/// Whether there are two distinct numbers, one of them zero.
bool is_binary(const Numbers& numbers) {
  std::optional<double> other;
  bool zero = false;
  for (const double number : numbers.all) {
    if (number == 0.0)
      zero = true;
    else if (!other)
      other = number;
    else if (*other != number)
      return false;
  }
  return zero && other;
}

/// Whether the tensor is a matrix with two distinct numbers, one of them zero. An identity does not
/// count if a product reads it, since weights may be initialised so.
bool is_mask(const Numbers& numbers, const std::vector<Use>& uses) {
  const bool multiplied = std::ranges::any_of(uses, [](const Use& use) {
    const OpType type = use.node->op_type;
    return type == ops::MatMul || type == ops::Einsum || type == ops::Transpose;
  });
  const bool identity = is_square(numbers, 2) && every_matrix(numbers, is_diagonal);
  return numbers.axes.size() >= 2 && is_binary(numbers) && !(identity && multiplied);
}

/// Whether a vector only rises or only falls, such as the noise of a diffusion model. Eight random
/// numbers do so with probability 1 in 20,160. Lookup tables are seldom vectors.
bool is_monotone(const Numbers& numbers, const std::vector<Use>& uses) {
  const bool looked_up = std::ranges::all_of(
      uses, [](const Use& use) { return use.node->op_type == ops::Gather && use.input == 0; });
  const std::size_t least = looked_up ? 5 : 8;
  if (numbers.axes.size() != 1 || numbers.size() < least)
    return false;
  const auto& all = numbers.all;
  return std::ranges::adjacent_find(all, std::less_equal<>()) == all.end() ||
         std::ranges::adjacent_find(all, std::greater_equal<>()) == all.end();
}

bool is_symmetric(const double* matrix, std::int64_t n) {
  const double off_diagonal = matrix[1];
  bool varies = false;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      if (matrix[i * n + j] != matrix[j * n + i])
        return false;
      varies = varies || matrix[i * n + j] != off_diagonal;
    }
  }
  return varies && !is_diagonal(matrix, n);
}

/// Whether rows sum to 1, as for a mean over neighbours or an interpolation.
bool sums_to_one(const Numbers& numbers) {
  if (numbers.axes.size() < 2 || all_equal(numbers.all))
    return false;
  const auto length = static_cast<std::size_t>(numbers.last(0));
  for (std::size_t at = 0; at < numbers.size(); at += length) {
    double sum = 0.0;
    for (std::size_t i = at; i < at + length; ++i) {
      if (numbers.all[i] < 0.0)
        return false;
      sum += numbers.all[i];
    }
    if (std::abs(sum - 1.0) > 1e-5)
      return false;
  }
  return !(is_square(numbers, 2) && every_matrix(numbers, is_diagonal));
}

/// Whether no number is negative, nearly half are exactly zero, and the rest differ: a filter bank,
/// or a normalised adjacency matrix.
bool is_mostly_zero(const Numbers& numbers) {
  if (numbers.axes.size() < 2)
    return false;
  std::size_t zeros = 0;
  std::vector<double> sizes;
  for (const double number : numbers.all) {
    if (number < 0.0)
      return false;
    zeros += number == 0.0 ? 1 : 0;
    if (number > 0.0 && sizes.size() < 3 && std::ranges::find(sizes, number) == sizes.end())
      sizes.push_back(number);
  }
  return sizes.size() >= 2 && 5 * zeros >= 2 * numbers.size();
}

/// Whether consecutive numbers have a constant difference or a constant ratio (frequencies,
/// slopes).
bool is_sequence(const double* first, std::int64_t count, std::int64_t stride) {
  const auto at = [&](std::int64_t i) { return first[i * stride]; };
  const double step = at(1) - at(0);
  const double ratio = at(0) == 0.0 ? -1.0 : at(1) / at(0);
  bool arithmetic = true;
  bool geometric = ratio >= 0.0;
  for (std::int64_t i = 2; i < count && (arithmetic || geometric); ++i) {
    const double size = std::max(std::abs(at(i)), std::abs(step));
    arithmetic = arithmetic && std::abs(at(i) - at(i - 1) - step) <= kSequenceTolerance * size;
    geometric =
        geometric && std::abs(at(i) - ratio * at(i - 1)) <= kSequenceTolerance * std::abs(at(i));
  }
  return arithmetic || geometric;
}

/// Whether x[t+1] + x[t-1] = k * x[t] holds, as for sines, cosines and straight lines.
bool is_wave(const double* first, std::int64_t count, std::int64_t stride) {
  const auto at = [&](std::int64_t i) { return first[i * stride]; };
  double product = 0.0;
  double square = 0.0;
  double largest = 0.0;
  for (std::int64_t i = 1; i + 1 < count; ++i) {
    product += at(i) * (at(i - 1) + at(i + 1));
    square += at(i) * at(i);
    largest = std::max({largest, std::abs(at(i - 1)), std::abs(at(i + 1))});
  }
  const double k = square == 0.0 ? 0.0 : product / square;
  if (std::abs(k) > 2.0 + kSineTolerance)
    return false;
  for (std::int64_t i = 1; i + 1 < count; ++i) {
    if (std::abs(at(i - 1) + at(i + 1) - k * at(i)) > kSineTolerance * largest)
      return false;
  }
  return true;
}

/// Whether every line along one of the axes passes `test`; with `varying`, one of these lines must
/// have more than one distinct number.
bool along_an_axis(const Numbers& numbers, std::int64_t least,
                   const std::function<bool(const double*, std::int64_t, std::int64_t)>& test,
                   bool varying = false) {
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < numbers.axes.size(); ++i) {
    const std::int64_t length = numbers.last(i);
    bool all = length >= least;
    bool varies = !varying;
    for (std::size_t at = 0; all && at < numbers.size(); ++at) {
      if (static_cast<std::int64_t>(at) / stride % length != 0)
        continue;
      const double* first = numbers.all.data() + at;
      all = test(first, length, stride);
      varies = varies || first[0] != first[stride];
    }
    if (all && varies)
      return true;
    stride *= length;
  }
  return false;
}

bool is_table_of_waves(const Numbers& numbers) {
  if (numbers.axes.size() < 2)
    return false;
  constexpr std::int64_t kMin = 5; // three equations for one unknown
  return along_an_axis(numbers, kMin, is_wave, /*varying=*/true);
}

/// Includes tables of powers: 1, t, t^2, ... for every t.
bool is_table_of_sequences(const Numbers& numbers) {
  const std::int64_t least = numbers.axes.size() == 1 ? 3 : 4;
  if (numbers.axes.size() == 1 && numbers.size() > 1 && numbers.all[1] == 0.0 &&
      numbers.all.back() == 0.0)
    return false; // possible initial weight: 1 0 0 0
  return along_an_axis(numbers, least, is_sequence, /*varying=*/true);
}

/// Whether the numbers from `first` on are symmetric; only the two at the ends may be zero.
bool is_mirrored(const std::vector<double>& all, std::size_t first) {
  const std::size_t count = all.size() - first;
  for (std::size_t i = 0; i < count; ++i) {
    const double own = all[first + i];
    const double other = all[all.size() - 1 - i];
    const bool inside = i > 0 && i + 1 < count;
    if (std::abs(own - other) > 1e-6 * std::abs(other) || (inside && own == 0.0))
      return false;
  }
  return true;
}

/// Whether a vector is a window: symmetric, or one period of symmetric numbers whose minimum is
/// only at the beginning.
bool is_window(const Numbers& numbers) {
  const std::vector<double>& all = numbers.all;
  if (numbers.axes.size() != 1 || all.size() < 3 || all_equal(all))
    return false;
  const bool is_period = all.size() >= 8 && std::ranges::min(all) == all[0] && is_mirrored(all, 1);
  return is_period || is_mirrored(all, 0);
}

/// Whether the zeros are exactly the elements on one side of the diagonal (HiPPO recurrence).
bool is_triangular(const double* matrix, std::int64_t n) {
  bool lower = true;
  bool upper = true;
  for (std::int64_t i = 0; i < n * n; ++i) {
    const bool zero = matrix[i] == 0.0;
    lower = lower && zero == (i / n < i % n);
    upper = upper && zero == (i / n > i % n);
  }
  return lower || upper;
}

/// Whether rows are orthogonal and the first row is constant, as in a cosine transform.
bool is_transform(const double* matrix, std::int64_t n) {
  for (std::int64_t i = 1; i < n; ++i) {
    if (std::abs(matrix[i] - matrix[0]) > 1e-6 * std::abs(matrix[0]))
      return false;
  }
  const auto product = [&](std::int64_t a, std::int64_t b) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i)
      sum += matrix[a * n + i] * matrix[b * n + i];
    return sum;
  };
  for (std::int64_t a = 0; a < n; ++a) {
    for (std::int64_t b = 0; b < a; ++b) {
      if (std::abs(product(a, b)) > 1e-5 * std::sqrt(product(a, a) * product(b, b)))
        return false;
    }
    if (product(a, a) == 0.0)
      return false;
  }
  return true;
}

// --- filters ---

/// Whether a convolution's weight [K, C, ...] has the same filter for all channels, or computes
/// means or sums.
bool is_same_filter(const Value& value, const std::vector<double>& numbers) {
  if (value.shape.size() < 3 || value.shape[0] < 1)
    return false;
  const auto filter = numbers.size() / static_cast<std::size_t>(value.shape[0]);
  if (all_equal(numbers)) { // a mean, a sum, or an initial weight
    const auto rows = value.shape.size() >= 4 ? value.shape[value.shape.size() - 2] : 1;
    const auto window = rows * value.shape.back();
    const auto mean = static_cast<float>(1.0 / static_cast<double>(window));
    return window > 1 && (static_cast<float>(numbers.front()) == mean || numbers.front() == 1.0);
  }
  bool same = value.shape[0] > 1;
  for (std::size_t i = filter; same && i < numbers.size(); ++i)
    same = numbers[i] == numbers[i - filter];
  return same;
}

/// Whether all windows of a convolution's weight [K, C, ...] are symmetric or antisymmetric along
/// every axis: Gauss, Sobel, Laplace, cosine transforms.
bool is_mirrored_filter(const Value& value, const std::vector<double>& numbers) {
  if (value.shape.size() < 3 || value.shape.size() > 4 || all_equal(numbers))
    return false;
  const auto rows = value.shape.size() == 4 ? value.shape[value.shape.size() - 2] : 1;
  const auto columns = value.shape.back();
  const auto window = static_cast<std::size_t>(rows * columns);
  if (window < 3)
    return false;
  const auto mirrors = [&](std::size_t at, bool by_rows, double sign) {
    for (std::size_t i = 0; i < window; ++i) {
      const std::size_t row = i / static_cast<std::size_t>(columns);
      const std::size_t column = i % static_cast<std::size_t>(columns);
      const std::size_t other =
          by_rows ? (static_cast<std::size_t>(rows) - 1 - row) * static_cast<std::size_t>(columns) +
                        column
                  : row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(columns) -
                        1 - column;
      if (numbers[at + i] != sign * numbers[at + other])
        return false;
    }
    return true;
  };
  bool center_only = true; // as in a convolution initialised to an identity
  for (std::size_t at = 0; at < numbers.size(); at += window) {
    const bool columnwise = mirrors(at, false, 1.0) || mirrors(at, false, -1.0);
    const bool rowwise = mirrors(at, true, 1.0) || mirrors(at, true, -1.0);
    if (!columnwise || !rowwise)
      return false;
    for (std::size_t i = 0; i < window; ++i)
      center_only = center_only && (i == window / 2 || numbers[at + i] == 0.0);
  }
  return !center_only;
}

} // namespace

std::optional<bool> has_two_numbers(const Value& value) {
  const auto* list = reals_of(value.values);
  return list == nullptr ? std::nullopt : std::optional(is_binary({*list, {}}));
}

BufferSign buffer_by_numbers(const Value& value, const std::vector<Use>& uses) {
  using Strength = BufferSign::Strength;
  const auto* list = reals_of(value.values);
  if (list == nullptr || list->size() < 2)
    return {};
  Numbers numbers{*list, {}};
  for (const std::int64_t axis : value.shape) {
    if (axis > 1)
      numbers.axes.push_back(axis);
  }
  if (holds_infinities(numbers))
    return {"numbers that stand for infinity", Strength::certain};
  if (all_equal(*list) && !is_weight_of_layer(uses))
    return {};
  const bool filter = std::ranges::any_of(
      uses, [](const Use& use) { return use.node->op_type == ops::Conv && use.input == 1; });
  if (filter && is_same_filter(value, *list))
    return {"one filter for all channels", Strength::strong};
  if (filter && is_mirrored_filter(value, *list))
    return {"a fixed filter", Strength::weak, true};
  if (is_table_of_sequences(numbers))
    return {"numbers in sequence", Strength::weak, true};
  if (is_table_of_waves(numbers))
    return {"sines of its position", Strength::strong, true};
  if (is_monotone(numbers, uses))
    return {"numbers in order", Strength::weak, true};
  if (is_window(numbers))
    return {"numbers that mirror themselves", Strength::weak, true};
  if (is_square(numbers, 3) && numbers.axes.size() == 2 && every_matrix(numbers, is_triangular))
    return {"a triangular matrix", Strength::strong, true};
  if (is_square(numbers, 3) && numbers.size() <= 1 << 16 && every_matrix(numbers, is_transform))
    return {"rows of a transform", Strength::weak, true};
  if (is_weight_of_layer(uses))
    return {};
  if (is_mask(numbers, uses))
    return {"a mask of two numbers", Strength::strong};
  if (is_square(numbers, 3) && every_matrix(numbers, is_symmetric))
    return {"a symmetric matrix", Strength::strong};
  if (sums_to_one(numbers))
    return {"rows that sum to one", Strength::strong};
  if (is_mostly_zero(numbers))
    return {"mostly zeros", Strength::strong};
  return {};
}

} // namespace monet::onnx_file
