#include "commands/formats.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>

namespace monet::cli {

namespace {

struct Matrices {
  NpyArray a;
  NpyArray b;
  GemmShape shape;
};

Matrices read_matrices(const std::vector<std::string>& files) {
  Matrices result;
  result.a = read_npy(files[0]);
  result.b = read_npy(files[1]);
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

} // namespace

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

} // namespace monet::cli
