// Parses memory budgets and finds the memory that the process may use; commands with --budget or
// --memory-limit call it.
#include "options/memory_budget.hpp"

#include "console.hpp"

#include "monet/base/warnings.hpp"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>

namespace monet::cli {

namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array kUnits{Unit{"", 1},
                            Unit{"B", 1},
                            Unit{"kB", 1e3},
                            Unit{"MB", 1e6},
                            Unit{"GB", 1e9},
                            Unit{"KiB", 1024},
                            Unit{"MiB", 1024.0 * 1024},
                            Unit{"GiB", 1024.0 * 1024 * 1024}};

} // namespace

std::int64_t parse_budget(std::string_view text, std::int64_t whole, std::string_view option) {
  constexpr double kMax = 9e18;
  constexpr double kLikelyShare = 100; // such a number of bytes is rather a percentage
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!rest.empty() && rest.front() == ' ')
    rest.remove_prefix(1);
  if (error == std::errc{} && std::isfinite(number) && number >= 0) {
    double bytes = -1;
    if (rest == "%")
      bytes = number / 100.0 * static_cast<double>(whole);
    for (const Unit& unit : kUnits) {
      if (rest == unit.name)
        bytes = number * unit.bytes;
    }
    if (rest.empty() && number > 0 && number <= kLikelyShare)
      warn({std::string(option)}, fmt::format("{0:g} is read as {0:g} bytes", number),
           fmt::format("write '{:g}%' for a share", number));
    if (bytes >= 0 && bytes < kMax)
      return static_cast<std::int64_t>(std::floor(bytes));
  }
  throw UsageError(fmt::format(
      "{} '{}': a number of bytes, KiB, MiB or GiB, or a percentage is expected", option, text));
}

std::string budget_problem(const std::string& text) {
  try {
    parse_budget(text, 100, "budget");
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::int64_t machine_memory_bytes() {
  const std::int64_t bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  std::int64_t least = bytes;
  std::int64_t limit = 0; // the file contains "max" if there is no limit
  std::ifstream group("/sys/fs/cgroup/memory.max");
  if (group >> limit && limit > 0)
    least = std::min(least, limit);
  rlimit space{}; // set by `ulimit -v`
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur < static_cast<rlim_t>(least))
    least = static_cast<std::int64_t>(space.rlim_cur);
  return least;
}

} // namespace monet::cli
