// Amounts of memory and time for people: messages and tables.
#pragma once

#include <cstdint>
#include <string>

namespace monet {

/// Bytes with a binary prefix and in full: "2.52 MiB (2,641,460 bytes)"; "50 bytes" if they are
/// few.
std::string both_bytes(std::int64_t bytes);

/// Duration with `digits` significant digits and a unit in which it is neither tiny nor huge:
/// "3.3628 ms", "108.4 s", "3.1 days".
std::string human_duration(double seconds, int digits);

} // namespace monet
