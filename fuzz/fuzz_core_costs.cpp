// Core costs of --model stream-coala: whatever the bytes are, the answer is a table or an
// InputError.
#include "monet/reference/stream_costs.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    monet::stream::parse_core_costs({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  } catch (const monet::InputError&) {
    // The only failure that bytes may cause; anything else ends the run.
  }
  return 0;
}
