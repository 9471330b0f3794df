#include "execute/compare.hpp"

#include "execute/shared/generator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace monet::test {

namespace {

using nlohmann::json;

class Comparer {
public:
  explicit Comparer(double tolerance) : tolerance_(tolerance) {}

  void check(std::string_view what, double actual, double expected, double scale) {
    const double error = std::abs(actual - expected) / scale;
    if (!(error <= tolerance_) && result_.problem.empty()) { // not a number is a problem, too
      result_.problem = fmt::format("{} is {:.17g}, expected {:.17g}, relative error {:.2g}", what,
                                    actual, expected, error);
    }
    result_.error = std::max(result_.error, error);
  }
  Comparison result() const { return result_; }

private:
  double tolerance_;
  Comparison result_;
};

double largest_of(const std::vector<double>& numbers) {
  double result = 0.0;
  for (const double number : numbers)
    result = std::max(result, std::abs(number));
  return result;
}

double norm_of(const std::vector<double>& numbers) {
  double sum = 0.0;
  for (const double number : numbers)
    sum += number * number;
  return std::sqrt(sum);
}

double projection_of(const std::vector<double>& numbers) {
  const NumberGenerator generator("projection", numbers.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    sum += numbers[i] * generator.uniform(i);
  return sum;
}

Comparison compare_integers(const json& expected, const std::vector<double>& numbers) {
  const auto values = expected.at("integers").get<std::vector<std::int64_t>>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (numbers[i] != static_cast<double>(values[i]))
      return {fmt::format("element {} is {}, expected {}", i, numbers[i], values[i]), 1.0};
  }
  return {};
}

} // namespace

Comparison compare(const json& expected, const std::vector<std::int64_t>& shape,
                   const std::vector<double>& numbers, double tolerance, double min_magnitude) {
  if (expected.is_array()) {
    const double largest = std::max(min_magnitude, expected.at(0).get<double>());
    Comparer comparer(tolerance);
    const double scale = largest * std::sqrt(static_cast<double>(numbers.size()));
    comparer.check("largest magnitude", largest_of(numbers), expected.at(0), largest);
    comparer.check("norm", norm_of(numbers), expected.at(1), scale);
    comparer.check("projection", projection_of(numbers), expected.at(2), scale);
    return comparer.result();
  }
  const auto wanted_shape = expected.at("shape").get<std::vector<std::int64_t>>();
  if (shape != wanted_shape) {
    return {fmt::format("shape is [{}], expected [{}]", fmt::join(shape, ", "),
                        fmt::join(wanted_shape, ", ")),
            1.0};
  }
  if (expected.contains("integers"))
    return compare_integers(expected, numbers);
  const auto values = expected.at("values").get<std::vector<double>>();
  double largest = min_magnitude;
  for (const double value : values)
    largest = std::max(largest, std::abs(value));
  largest = std::max(largest, expected.value("max", 0.0));
  Comparer comparer(tolerance);
  std::vector<std::size_t> at;
  if (expected.contains("at"))
    at = expected.at("at").get<std::vector<std::size_t>>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t element = at.empty() ? i : at[i];
    comparer.check(fmt::format("element {}", element), numbers.at(element), values[i], largest);
  }
  if (!at.empty()) {
    const double scale = largest * std::sqrt(static_cast<double>(numbers.size()));
    comparer.check("norm", norm_of(numbers), expected.at("norm"), scale);
    comparer.check("projection", projection_of(numbers), expected.at("projection"), scale);
  }
  return comparer.result();
}

} // namespace monet::test
