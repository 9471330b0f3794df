// Texts of times, rates and passes of cluster.json, for its tables and its trace.
#include "report/cluster/cluster_text.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace monet::cluster_text {

std::string human_nanoseconds(std::int64_t nanoseconds) {
  constexpr std::array kUnits{"ns", "us", "ms", "s"};
  auto value = static_cast<double>(nanoseconds);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit)
    value /= 1000;
  return value >= 1e5 ? fmt::format("{:.0f} s", value)
                      : fmt::format("{:.5g} {}", value, kUnits[unit]);
}

std::string human_rate(double per_second) {
  return per_second < 10'000 ? fmt::format("{:.5g}", per_second)
                             : group_digits(saturated_integer(std::round(per_second)));
}

std::int64_t chunks_of(const nlohmann::ordered_json& passes) {
  std::int64_t chunks = 1;
  for (const auto& row : passes)
    chunks = std::max(chunks, row.at(pass_column::chunk).get<std::int64_t>() + 1);
  return chunks;
}

std::string pass_name(const nlohmann::ordered_json& row, std::int64_t chunks) {
  constexpr std::string_view kLetters = "FBW";
  const char letter = kLetters.at(row.at(pass_column::pass).get<std::size_t>());
  const auto micro_batch = row.at(pass_column::micro_batch).get<std::int64_t>();
  if (chunks <= 1)
    return fmt::format("{}{}", letter, micro_batch);
  return fmt::format("{}{}.{}", letter, micro_batch,
                     row.at(pass_column::chunk).get<std::int64_t>());
}

std::string share_percent(const nlohmann::ordered_json& part, std::int64_t whole) {
  const auto time = part.get<double>();
  if (time == 0 || whole == 0)
    return "0";
  return fmt::format("{:.2f}", 100 * time / static_cast<double>(whole));
}

} // namespace monet::cluster_text
