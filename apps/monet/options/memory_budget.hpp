// A budget of memory as users write it: bytes, KiB, MiB, GiB, or a percentage.
#pragma once

#include <cstdint>
#include <string_view>

namespace monet::cli {

/// "1500000", "64 MiB", "1.5GiB", "80%" (of `whole`); rounded down to bytes. UsageError, which
/// names `option`, for anything else.
std::int64_t parse_budget(std::string_view text, std::int64_t whole, std::string_view option);

/// What this process may use: the machine's memory, or less where a control group says so.
std::int64_t machine_memory_bytes();

} // namespace monet::cli
