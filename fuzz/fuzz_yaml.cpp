// Every reader of YAML on the same bytes: whatever they are, the answer is a value or an
// InputError.
#include "monet/core_cost/layers.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <cstddef>
#include <cstdint>

namespace {

template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const monet::InputError&) {
    // The only failure that bytes may cause; anything else ends the run.
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Core files that a system file names: a fixed good one, or half of these bytes.
  const monet::FileOpener open = [&](const std::string& name, const monet::SourceLoc& where) {
    if (name.empty())
      throw monet::InputError(where, "no such file");
    constexpr const char* kCore =
        "{name: c, memories: {m: {size: 64, r_cost: 1, w_cost: 1, operands: [I1, I2, O], ports: "
        "[{name: p, type: read_write, bandwidth_max: 8, allocation: ['I1, tl', 'I2, tl', 'O, tl', "
        "'O, fl']}], served_dimensions: [D1]}}, operational_array: {dimensions: [D1], sizes: [2]}}";
    const bool own = name == "self";
    return monet::FileText{name, own ? std::string(text.substr(0, size / 2)) : kCore};
  };
  attempt([&] { monet::parse_yaml(text, "fuzz.yaml"); });
  attempt([&] { verify(monet::parse_chip(text, "fuzz.yaml", open)); });
  attempt([&] { monet::parse_core(text, "fuzz.yaml"); });
  attempt([&] { monet::parse_mapping(text, "fuzz.yaml"); });
  attempt([&] { monet::parse_layers(text, "fuzz.yaml"); });
  attempt([&] { monet::parse_stacks(text, "fuzz.yaml"); });
  return 0;
}
