// Operator logs: whatever the bytes are, the answer is a log whose problem can be replayed, or an
// InputError.
#include "monet/base/errors.hpp"
#include "monet/optimise/operator_log.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const monet::OperatorLog log =
        monet::parse_operator_log({reinterpret_cast<const char*>(data), size}, "fuzz.log");
    monet::replay(log.problem, monet::store_everything(log.problem));
  } catch (const monet::InputError&) {
    // The only failure that bytes may cause; anything else ends the run.
  }
  return 0;
}
