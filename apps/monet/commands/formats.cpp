// monet formats: describes number formats, and rounds numbers and arrays or multiplies matrices in
// them. Calls the numerics stage.
#include "base/shared/npy.hpp"
#include "base/shared/text.hpp"
#include "commands/commands.hpp"
#include "options/formats_options.hpp"
#include "pipeline.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/stop.hpp"
#include "monet/numerics/blocks.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

namespace monet::cli {

namespace {

/// Array file that is written after all results are known.
struct ArrayFile {
  std::string path; ///< empty if not requested
  std::string bytes;
};

/// 4-byte floats if single precision represents the format and every finite number fits; else
/// 8-byte floats.
NpyType float_type(const NumberFormat& format, std::span<const double> numbers) {
  constexpr double kMax = std::numeric_limits<float>::max();
  const bool fits = fits_single(format) && std::ranges::all_of(numbers, [](double x) {
                      return !std::isfinite(x) || std::abs(x) <= kMax;
                    });
  return fits ? NpyType::f4 : NpyType::f8;
}

/// Writes the array files, then the answer.
void write_answer(std::span<const ArrayFile> files, const std::string& json_path, const Json& json,
                  const std::string& table) {
  check_stop();
  for (const ArrayFile& file : files) {
    if (!file.path.empty())
      write_file_atomically(file.path, file.bytes);
  }
  write_output(json_path, json, table);
}

/// Provenance of the array files, which are hashed only if the answer is written as JSON.
Provenance formats_provenance(const FormatsArguments& arguments,
                              const std::vector<std::string>& files) {
  Provenance provenance =
      provenance_of(arguments.json.empty() ? std::vector<std::string>{} : files);
  provenance.seed = arguments.numbers.seed;
  return provenance;
}

/// Common formats, each once under its first name. Formats without blocks have the name of their
/// element.
std::vector<NamedTensorFormat> common_formats() {
  std::vector<NamedTensorFormat> formats;
  for (const std::string& name : common_tensor_format_names()) {
    const TensorFormat format = *parse_tensor_format(name);
    const bool known =
        std::ranges::any_of(formats, [&](const auto& one) { return one.format == format; });
    if (!known)
      formats.push_back({format.blocks ? name : name_of(format.element), format});
  }
  return formats;
}

int show_formats(const FormatsArguments& arguments) {
  const bool all = arguments.names.empty();
  std::vector<NamedTensorFormat> formats;
  for (const std::string& name : arguments.names)
    formats.push_back(tensor_format_named(name, "formats"));
  if (all)
    formats = common_formats();
  const Json json = formats_json(formats, !all, formats_provenance(arguments, {}));
  write_answer({}, arguments.json, json, all ? formats_table(json) : formats_in_full(json));
  return kExitOk;
}

double parse_number(const std::string& text) {
  std::string_view rest = text;
  if (rest.starts_with('+') && !rest.starts_with("+-"))
    rest.remove_prefix(1);
  double number = 0;
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data(), end, number);
  const bool vanishes = error == std::errc::result_out_of_range;
  if (stop != end || (error != std::errc{} && !vanishes))
    throw InputError({"--round"}, fmt::format("'{}' is not a number", text));
  if (vanishes)
    throw InputError({"--round"}, fmt::format("'{}' is beyond double precision", text));
  return number;
}

int round_numbers(const FormatsArguments& arguments) {
  std::vector<double> numbers;
  for (const std::string& text : arguments.round)
    numbers.push_back(parse_number(text));
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(numbers.size())};
  QuantisedResult result;
  result.format = arguments.numbers.parsed_format(shape, "--round");
  result.rounding = arguments.numbers.parsed_rounding();
  result.full_range = arguments.numbers.full_range;
  result.shape = shape;
  result.before = numbers;
  const QuantisedTensor after =
      quantise(shape, numbers, result.format.format, {result.rounding, result.full_range, 0, {}});
  result.after = &after;
  const Json json = rounded_json(result, formats_provenance(arguments, {}));
  write_answer({}, arguments.json, json, rounded_table(json));
  return kExitOk;
}

/// Index of an element in an array of this shape: "[3, 17]".
std::string place_of(std::size_t element, std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> place(shape.size());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t d = shape.size(); d-- > 0;) {
    place[d] = rest % shape[d];
    rest /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(place, ", "));
}

/// Smallest unsigned integer type with at least `bits` bits.
NpyType unsigned_type(int bits) {
  if (bits <= 8)
    return NpyType::u1;
  return bits <= 16 ? NpyType::u2 : NpyType::u4;
}

ArrayFile codes_file(const FormatsArguments& arguments, const QuantisedResult& result) {
  if (arguments.codes.empty())
    return {};
  const TensorFormat& format = result.format.format;
  const int bits = format.element.bits();
  if (bits > 32)
    throw InputError({"--codes"}, fmt::format("codes of {} have {} bits, 32 at most are written",
                                              result.format.name, bits));
  std::vector<double> codes;
  codes.reserve(result.before.size());
  for (std::size_t i = 0; i < result.before.size(); ++i) {
    const auto code = element_code(format, result.after->elements[i]);
    if (!code)
      throw InputError({arguments.quantise, 0, 0, "element " + place_of(i, result.shape)},
                       fmt::format("is not a number, for which {} has no code", result.format.name),
                       "leave out --codes");
    codes.push_back(static_cast<double>(*code));
  }
  return {arguments.codes, npy_bytes(result.shape, codes, unsigned_type(bits))};
}

ArrayFile scales_file(const FormatsArguments& arguments, const QuantisedResult& result) {
  if (arguments.scales.empty())
    return {};
  const auto& blocks = result.format.format.blocks;
  const QuantisedTensor& after = *result.after;
  if (!blocks)
    throw InputError({"--scales"}, fmt::format("{} has no blocks", result.format.name),
                     "set their shape with --block");
  if (blocks->scale == kSinglePrecision)
    return {arguments.scales, npy_bytes(after.scale_shape, after.scales, NpyType::f4)};
  std::vector<double> codes;
  codes.reserve(after.scales.size());
  for (const double scale : after.scales)
    codes.push_back(static_cast<double>(scale_code(*blocks, scale)));
  return {arguments.scales,
          npy_bytes(after.scale_shape, codes, unsigned_type(scale_bits(*blocks)))};
}

std::vector<double> read_before(const FormatsArguments& arguments, const NpyArray& array) {
  if (arguments.before.empty())
    return {};
  const NpyArray before = read_npy(arguments.before);
  if (before.shape != array.shape)
    throw InputError({arguments.before},
                     fmt::format("has shape [{}], but {} has [{}]", fmt::join(before.shape, ", "),
                                 arguments.quantise, fmt::join(array.shape, ", ")));
  return before.numbers();
}

int quantise_array(const FormatsArguments& arguments, Session& session) {
  QuantisedResult result;
  result.rounding = arguments.numbers.parsed_rounding();
  result.full_range = arguments.numbers.full_range;
  tensor_format_named(arguments.numbers.format, "--format");
  const NpyArray array = session.stage("read files", [&] { return read_npy(arguments.quantise); });
  const std::vector<double> numbers = array.numbers();
  const std::vector<double> last = read_before(arguments, array);
  result.format = arguments.numbers.parsed_format(array.shape, arguments.quantise);
  result.shape = array.shape;
  result.before = numbers;
  const QuantisedTensor after = session.stage("quantise", [&] {
    return quantise(array.shape, numbers, result.format.format,
                    {result.rounding, result.full_range, 0, last});
  });
  result.after = &after;
  std::vector<std::string> files{arguments.quantise};
  if (!arguments.before.empty())
    files.push_back(arguments.before);
  const Json json = session.stage(
      "count errors", [&] { return quantised_json(result, formats_provenance(arguments, files)); });
  const NpyType type = float_type(result.format.format.element, after.values);
  const std::vector<ArrayFile> written{
      {arguments.output, npy_bytes(array.shape, after.values, type)},
      scales_file(arguments, result),
      codes_file(arguments, result)};
  write_answer(written, arguments.json, json,
               printable(arguments.quantise) + " in " + quantised_table(json));
  return kExitOk;
}

struct Matrices {
  NpyArray a;
  NpyArray b;
  GemmShape shape;
};

Matrices read_matrices(const std::vector<std::string>& files) {
  Matrices result{.a = read_npy(files[0]), .b = read_npy(files[1])};
  const auto& left = result.a.shape;
  const auto& right = result.b.shape;
  ProblemList problems;
  for (const auto& [file, shape] : {std::pair(&files[0], &left), std::pair(&files[1], &right)}) {
    if (shape->size() != 2)
      problems.add({*file},
                   fmt::format("has shape [{}]: a matrix has two axes", fmt::join(*shape, ", ")));
  }
  if (problems.empty() && left[1] != right[0])
    problems.add({files[0]},
                 fmt::format("has shape [{}], which cannot be multiplied by {} with [{}]",
                             fmt::join(left, ", "), files[1], fmt::join(right, ", ")));
  problems.throw_if_any();
  result.shape = {left[0], right[1], left[1]};
  return result;
}

/// Runs `monet formats --gemm`.
int multiply_matrices(const FormatsArguments& arguments, const Command& command, Session& session) {
  const ParsedUnit unit = parse_unit(arguments.unit, arguments.numbers, command);
  const GemmOptions options = arguments.unit.options();
  const Matrices read = session.stage("read files", [&] { return read_matrices(arguments.gemm); });
  const std::vector<double> a = read.a.numbers();
  const std::vector<double> b = read.b.numbers();
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<double> c = session.stage("multiply", [&] {
    return unit.blocks
               ? emulate_block_gemm(read.shape, a, b, unit.blocks->format, unit.mac, options)
               : emulate_gemm(read.shape, a, b, unit.mac, options);
  });
  ProductResult result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.shape = read.shape;
  result.unit = unit.mac;
  result.blocks = unit.blocks;
  result.hybrid = unit.hybrid;
  result.deviation = session.stage("compare with the exact product", [&] {
    return deviation(precise_product(read.shape, a, b, options.jobs), c);
  });
  const Json json = product_json(result, formats_provenance(arguments, arguments.gemm));
  const std::vector<std::int64_t> shape{read.shape.m, read.shape.n};
  const NpyType type = float_type(unit.mac.sum.value_or(kSinglePrecision), c);
  const std::vector<ArrayFile> written{{arguments.output, npy_bytes(shape, c, type)}};
  write_answer(written, arguments.json, json, product_table(json));
  return kExitOk;
}

} // namespace

void add_formats_command(Command& monet) {
  auto arguments = std::make_shared<FormatsArguments>();
  Command& command = monet.add_command(
      "formats", "Show number formats, round numbers and arrays, emulate products");
  arguments->add_to(command);
  command.footer = "Names of formats: fp32, bf16, fp8_e4m3, eXmY, intN, qM.F, mxfp4_e2m1, ...; "
                   "docs/reference/number-formats.md explains them.\nExample: monet formats "
                   "--round 0.3 --format fp8_e4m3";
  command.missing = [&command, arguments] { return arguments->missing(command); };
  command.action = [&command, arguments](Session& session) {
    arguments->check(command);
    switch (arguments->question(command)) {
    case FormatsQuestion::round:
      return round_numbers(*arguments);
    case FormatsQuestion::quantise:
      return quantise_array(*arguments, session);
    case FormatsQuestion::gemm:
      return multiply_matrices(*arguments, command, session);
    case FormatsQuestion::formats:
      break;
    }
    return show_formats(*arguments);
  };
}

} // namespace monet::cli
