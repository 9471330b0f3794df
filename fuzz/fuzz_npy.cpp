// The reader of .npy arrays: whatever the bytes are, the answer is an array or an InputError.
#include "monet/base/errors.hpp"
#include "monet/base/npy.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    monet::parse_npy({reinterpret_cast<const char*>(data), size}, "fuzz.npy");
  } catch (const monet::InputError&) {
    // The only failure that bytes may cause; anything else ends the run.
  }
  return 0;
}
