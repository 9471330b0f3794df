// Memory budgets in the notation of users: bytes, KiB, MiB, GiB, or a percentage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace monet::cli {

/// Parses a budget: "1500000", "64 MiB", "1.5GiB", "80%" (of `whole`). Rounds down to bytes. Throws
/// UsageError with the name of `option` for any other text.
std::int64_t parse_budget(std::string_view text, std::int64_t whole, std::string_view option);

/// Message about a budget in a file that parse_budget() rejects; empty if it is valid.
std::string budget_problem(const std::string& text);

/// Memory in bytes that this process may use: the machine's, or less if a control group or `ulimit
/// -v` limits it.
std::int64_t machine_memory_bytes();

} // namespace monet::cli
