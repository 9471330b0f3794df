// Formats, rounding modes and blocks by name, and an array in them.
#include "base/shared/npy.hpp"
#include "base/shared/text.hpp"
#include "readers/readers.hpp"

#include "monet/base/errors.hpp"
#include "monet/numerics/blocks.hpp"
#include "monet/numerics/mac.hpp"

#include <cmath>

namespace monet::fuzz {

namespace {

constexpr std::size_t kMaxElements = 4096;

/// What an element was rounded to is a number of the format, which its code stands for.
void check_element(const TensorFormat& format, double element) {
  const auto code = element_code(format, element);
  if (std::isnan(element))
    return;
  internal_check(code && decode(format.element, *code) == element, "an element has a code");
  internal_check(round_to(format.element, element) == element, "an element stays what it is");
}

} // namespace

void quantise_array(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  const std::vector<std::string_view> words = split(bytes.substr(0, end), ' ', 4);
  auto format = parse_tensor_format(words[0]);
  parse_accumulator(words[0]);
  const auto rounding = words.size() > 1 ? parse_rounding(words[1]) : Rounding{};
  const auto shape = words.size() > 2 ? parse_block_shape(words[2]) : std::nullopt;
  if (!format || !rounding || end == bytes.npos)
    return;
  internal_check(parse_number_format(name_of(format->element)) == format->element,
                 "a format's name is read as the format");
  const NpyArray array = parse_npy(bytes.substr(end + 1), "fuzz.npy");
  if (!is_emulated(format->element) || array.size() > kMaxElements)
    return;
  if (shape) {
    if (!format->blocks)
      format->blocks.emplace();
    format->blocks->rows = array.shape.size() < 2 ? 1 : shape->front();
    format->blocks->columns = shape->back();
    const auto mode = words.size() > 3 ? scale_mode_named(words[3]) : std::nullopt;
    format->blocks->mode = mode.value_or(ScaleMode::floor);
  }
  const QuantisedTensor result =
      quantise(array.shape, array.numbers(), *format, {*rounding, false, 0, {}});
  for (const double element : result.elements)
    check_element(*format, element);
  for (const double scale : result.scales)
    scale_code(*format->blocks, scale);
}

} // namespace monet::fuzz
