// libFuzzer's entry points, the same for all targets of a program.
#include "structured/mutator.hpp"
#include "structured/words.hpp"
#include "target.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/stage.hpp"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace monet::fuzz {

namespace {

const Target* chosen = nullptr;

const Target* target_named(std::string_view name) {
  for (const Target& target : targets()) {
    if (target.name == name)
      return &target;
  }
  return nullptr;
}

std::optional<std::string> mutated(std::string_view input, Random& random) {
  switch (chosen->format) {
  case Format::onnx:
    return mutate_onnx(input, random);
  case Format::yaml:
    return mutate_yaml(input, random);
  case Format::json:
    return mutate_json(input, random);
  case Format::bytes:
    break;
  }
  return std::nullopt;
}

std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// False where it is nothing, or too long.
bool put(const std::optional<std::string>& text, std::uint8_t* data, std::size_t most) {
  if (!text || text->empty() || text->size() > most)
    return false;
  std::memcpy(data, text->data(), text->size());
  return true;
}

} // namespace

std::uint64_t variation(std::string_view model) {
  onnx::ModelProto proto;
  if (model.size() > INT_MAX || !proto.ParseFromArray(model.data(), static_cast<int>(model.size())))
    return 0;
  return static_cast<std::uint64_t>(proto.model_version()) % 64;
}

} // namespace monet::fuzz

using namespace monet::fuzz;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* path = std::getenv("MONET_FUZZ_DICTIONARY")) {
    monet::write_file_atomically(path, dictionary());
    std::exit(0);
  }
  const char* name = std::getenv("MONET_FUZZ_TARGET");
  chosen = target_named(name == nullptr ? "" : name);
  if (chosen == nullptr) {
    std::fputs("MONET_FUZZ_TARGET is to name one of:", stderr);
    for (const Target& target : targets())
      std::fprintf(stderr, " %s", std::string(target.name).c_str());
    std::fputs("\n", stderr);
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    chosen->run(view(data, size));
  } catch (const monet::InputError&) {
  } catch (const monet::InfeasibleError&) {
  } catch (const monet::Stopped&) {
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  Random random(seed);
  constexpr std::size_t kBytesInstead = 20; // now and then what the format does not allow
  if (!random.one_in(kBytesInstead)) {
    const auto text = mutated(view(data, size), random);
    if (put(text, data, most))
      return text->size();
  }
  return LLVMFuzzerMutate(data, size, most);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size,
                                                 const std::uint8_t* b, std::size_t b_size,
                                                 std::uint8_t* out, std::size_t most,
                                                 unsigned seed) {
  Random random(seed);
  std::optional<std::string> text;
  if (chosen->format == Format::onnx)
    text = cross_onnx(view(a, a_size), view(b, b_size), random);
  else
    text = cross_text(view(a, a_size), view(b, b_size), random);
  return put(text, out, most) ? text->size() : 0;
}
