// monet formats: formats shown, numbers and arrays rounded, products emulated.
#include "base/archive.hpp"
#include "base/shared/npy.hpp"
#include "base/shared/rng.hpp"
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <sstream>

namespace monet::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string& fixture(const std::string& name) {
  return archived("numerics.tar", name + ".npy");
}

class Formats : public ::testing::Test {
protected:
  Ran run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "formats");
    return run_monet(arguments, scratch_.path());
  }

  /// The answer as JSON, which has the form that the schema says.
  Json answer(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--json", "-"});
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 0) << ran.err;
    const Json found = ran.code == 0 ? Json::parse(ran.out) : Json::object();
    EXPECT_EQ(schema_violations(parse_file(repository("docs/formats.schema.json")), found),
              std::vector<std::string>{});
    return found;
  }

  std::string array(const std::string& name, const std::vector<std::int64_t>& shape,
                    const std::vector<double>& numbers, NpyType type = NpyType::f4) const {
    return scratch_.file(name, npy_bytes(shape, numbers, type));
  }

  std::string input(const std::string& name) const {
    return scratch_.file(name + ".npy", fixture(name));
  }

  std::size_t files() const {
    const auto all = fs::directory_iterator(scratch_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  Scratch scratch_;
};

TEST_F(Formats, AreListed) {
  const Ran ran = run({});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 120U) << line;
  const Json found = answer({});
  std::map<std::string, Json> by_name;
  for (const Json& format : found.at("formats"))
    by_name[format.at("name").get<std::string>()] = format;
  EXPECT_EQ(by_name.size(), found.at("formats").size());
  EXPECT_EQ(by_name.at("fp8_e4m3").at("other_names"), Json({"fp8", "e4m3_fn"}));
  EXPECT_EQ(by_name.at("fp8_e4m3").at("nan_codes"), Json({"0x7F", "0x7F"}));
  EXPECT_EQ(by_name.at("fp8_e5m2").at("infinity_code"), "0x7C");
  EXPECT_EQ(by_name.at("fp8_e5m2").at("nan_codes"), Json({"0x7D", "0x7F"}));
  EXPECT_EQ(by_name.at("fp32").at("largest"),
            static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(by_name.at("mxfp4_e2m1").at("bits_per_element"), 4.25);
  EXPECT_EQ(by_name.at("nvfp4").at("blocks").at("scale"), "fp8_e4m3");
  EXPECT_FALSE(by_name.at("fp8_e4m3").contains("values"));
}

TEST_F(Formats, AreShownInFull) {
  const Json found = answer({"fp4_e2m1", "int4", "fp16"}).at("formats");
  EXPECT_EQ(found[0].at("values"),
            Json({0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6}));
  EXPECT_EQ(found[1].at("values")[8], -8);
  EXPECT_FALSE(found[2].contains("values"));
  const Json special = answer({"e3m1"}).at("formats")[0].at("values");
  EXPECT_EQ(special[14], "inf");
  EXPECT_EQ(special[15], "nan");
  EXPECT_EQ(special[30], "-inf");
  const Ran ran = run({"mxfp6_e2m3", "e6m9"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("bits per element"), std::string::npos);
  EXPECT_NE(ran.out.find("\n0x38 "), std::string::npos) << ran.out;
}

// A fifth of the way from 0.25 to 0.5: 0.3125 is nearer than 0.28125.
TEST_F(Formats, SingleNumbersAreRounded) {
  const Json found = answer({"--round", "0.3", "-1e9", "nan", "448", "--format", "fp8_e4m3"});
  const Json& numbers = found.at("numbers");
  EXPECT_EQ(numbers[0].at("value"), 0.3125);
  EXPECT_EQ(numbers[0].at("code"), "0x2A");
  EXPECT_EQ(numbers[0].at("binary"), "0 0101 010");
  EXPECT_EQ(numbers[0].at("error"), 0.3125 - 0.3);
  EXPECT_EQ(numbers[1].at("value"), "nan");
  EXPECT_EQ(numbers[2].at("code"), "0x7F");
  EXPECT_EQ(numbers[3].at("code"), "0x7E");
  const Json fixed = answer({"--round=-inf", "-2.75", "--format", "q3.1"}).at("numbers");
  EXPECT_EQ(fixed[0].at("number"), "-inf");
  EXPECT_EQ(fixed[0].at("value"), -4);
  EXPECT_EQ(fixed[1].at("value"), -3); // 5.5 steps are rounded to 6
  EXPECT_EQ(fixed[1].at("binary"), "101.0");
  const Json none = answer({"--round", "nan", "--format", "int8"}).at("numbers");
  EXPECT_EQ(none[0].at("code"), nullptr);
  EXPECT_NE(run({"--round", "0.3", "--format", "fp8_e4m3"}).out.find("0x2A"), std::string::npos);
}

TEST_F(Formats, SingleNumbersMakeABlock) {
  const Json found = answer({"--round", "5", "0.6", "-20", "--format", "mxfp4_e2m1"});
  // 20 = 1.25 * 2^4, and 4 = 1 * 2^2 is the largest power of two of the format: 2^2.
  EXPECT_EQ(found.at("scales"), Json({{{"value", 4}, {"code", "0x81"}}}));
  EXPECT_EQ(found.at("numbers")[0].at("element"), 1); // 1.25 lies in the middle of 1 and 1.5
  EXPECT_EQ(found.at("numbers")[1].at("value"), 0);
  EXPECT_EQ(found.at("numbers")[2].at("value"), -16); // 5 in the middle of 4 and 6
  const Ran ran = run({"--round", "5", "0.6", "-20", "--format", "mxfp4_e2m1"});
  EXPECT_NE(ran.out.find("scale of block 0: 4 (0x81)"), std::string::npos) << ran.out;
}

TEST_F(Formats, RoundingIsRepeatable) {
  const auto values = [&](const char* seed) {
    return answer({"--round", "0.3", "0.3", "0.3", "0.3", "0.3", "0.3", "0.3", "0.3", "--format",
                   "e4m1", "--rounding", "stochastic:4", "--seed", seed})
        .at("numbers");
  };
  EXPECT_EQ(values("1"), values("1"));
  EXPECT_NE(values("1"), values("2"));
}

struct Case {
  const char* format;
  const char* values;
  const char* scales;
  const char* codes; ///< none: nullptr
};

TEST_F(Formats, ArraysEqualTheReferenceFiles) {
  for (const Case& one :
       {Case{"mxfp8_e5m2", "exact_fp8_e5m2_even_row1x32", "exact_fp8_e5m2_scaleE8M0_row1x32",
             "codes_fp8_e5m2_even_row1x32"},
        Case{"mxfp4_e2m1", "exact_fp4_e2m1_even_row1x32", "exact_fp4_e2m1_scaleE8M0_row1x32",
             "codes_fp4_e2m1_even_row1x32"},
        Case{"mxint8", "exact_int8_even_row1x32", "exact_int8_scaleE8M0_row1x32",
             "codes_int8_even_row1x32"},
        Case{"fp8_e4m3", "exact_fp8_e4m3_even_sq8x8", "exact_fp8_e4m3_scaleE8M0_sq8x8", nullptr}}) {
    std::vector<std::string> arguments{"--quantise", input("mx_input_64x96"),
                                       "--format",   one.format,
                                       "-o",         "out.npy",
                                       "--scales",   "scales.npy",
                                       "--codes",    "codes.npy"};
    if (one.codes == nullptr)
      arguments.insert(arguments.end(), {"--block", "8x8"});
    const Ran ran = run(arguments);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("signal to noise"), std::string::npos) << ran.out;
    EXPECT_TRUE(read_file(scratch_ / "out.npy") == fixture(one.values)) << one.format;
    EXPECT_TRUE(read_file(scratch_ / "scales.npy") == fixture(one.scales)) << one.format;
    if (one.codes != nullptr) {
      EXPECT_TRUE(read_file(scratch_ / "codes.npy") == fixture(one.codes)) << one.format;
    }
  }
}

TEST_F(Formats, ArraysAreCounted) {
  array("in.npy", {2, 3}, {1, 1.1, 500, -1e-9, std::nan(""), -700});
  const Json found = answer({"--quantise", "in.npy", "--format", "fp8_e4m3", "-o", "out.npy"});
  EXPECT_EQ(found.at("counts"), Json({{"numbers", 6},
                                      {"inexact", 4},
                                      {"saturated", 0},
                                      {"overflowed", 2},
                                      {"flushed_to_zero", 1},
                                      {"nan", 3},
                                      {"infinite", 0}}));
  EXPECT_EQ(found.at("errors").at("largest_relative"), 1);
  EXPECT_EQ(found.at("provenance").at("inputs").size(), 1U);
  const Json cut =
      answer({"--quantise", "in.npy", "--format", "fp8_e4m3", "--saturate", "-o", "out.npy"});
  EXPECT_EQ(cut.at("counts").at("saturated"), 2);
  EXPECT_EQ(cut.at("errors").at("largest_absolute"), 252);
}

TEST_F(Formats, ArraysTakeBlocksAlongAnyAxes) {
  array("in.npy", {2, 2, 3}, {8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  answer({"--quantise", "in.npy", "--format", "fp4_e2m1", "--block", "2x2", "--axes", "0,-1", "-o",
          "out.npy", "--scales", "s.npy"});
  const NpyArray scales = read_npy(scratch_ / "s.npy");
  EXPECT_EQ(scales.shape, (std::vector<std::int64_t>{1, 2, 2}));
  EXPECT_EQ(scales.whole, (std::vector<std::int64_t>{128, 125, 125, 125})); // 2^1 and 2^-2
  EXPECT_EQ(run({"--quantise", "in.npy", "--format", "mxfp4_e2m1", "--axes=-1,-2", "--block", "1x2",
                 "-o", "out.npy"})
                .code,
            0);
}

TEST_F(Formats, ScalesOfOtherFormatsAreFloatsOrCodes) {
  array("in.npy", {1, 4}, {448, 1, 2, 3});
  answer(
      {"--quantise", "in.npy", "--format", "fp8_e4m3_1x128", "-o", "o.npy", "--scales", "s.npy"});
  const NpyArray floats = read_npy(scratch_ / "s.npy");
  EXPECT_EQ(floats.real, std::vector<double>{1});
  const Json found =
      answer({"--quantise", "in.npy", "--format", "nvfp4", "-o", "o.npy", "--scales", "s.npy"});
  const NpyArray codes = read_npy(scratch_ / "s.npy");
  EXPECT_FALSE(codes.is_real);
  EXPECT_EQ(codes.whole, std::vector<std::int64_t>{0x7E}); // 448, times that of the tensor
  EXPECT_EQ(found.at("tensor_scale"), static_cast<double>(448.0F / (6 * 448)));
}

TEST_F(Formats, WideNumbersAreWrittenInEightBytes) {
  array("in.npy", {2}, {0.1, 1e300}, NpyType::f8);
  const auto bytes_each = [&](const char* format) {
    EXPECT_EQ(run({"--quantise", "in.npy", "--format", format, "-o", "out.npy"}).code, 0);
    return (fs::file_size(scratch_ / "out.npy") - 128) / 2;
  };
  EXPECT_EQ(bytes_each("fp64"), 8U);
  EXPECT_EQ(bytes_each("int32"), 8U);
  EXPECT_EQ(bytes_each("e11m4"), 8U);
  EXPECT_EQ(bytes_each("fp32"), 4U);
  array("whole.npy", {3}, {1, 2, 300}, NpyType::u2);
  EXPECT_EQ(
      run({"--quantise", "whole.npy", "--format", "e8m3", "-o", "out.npy", "--codes", "c.npy"})
          .code,
      0);
  EXPECT_EQ(read_npy(scratch_ / "out.npy").real, (std::vector<double>{1, 2, 288}));
  EXPECT_EQ(read_npy(scratch_ / "c.npy").whole, (std::vector<std::int64_t>{0x3F8, 0x400, 0x439}));
}

// 3 -> 4 steps: down to 4 - 0.5 where it grew, up where it fell.
TEST_F(Formats, HysteresisLooksAtTheLastNumbers) {
  array("in.npy", {3}, {3.5, 3.5, -3.5});
  array("before.npy", {3}, {3, 4, -3});
  EXPECT_EQ(run({"--quantise", "in.npy", "--format", "int8", "--rounding", "hysteresis", "--before",
                 "before.npy", "-o", "out.npy"})
                .code,
            0);
  EXPECT_EQ(read_npy(scratch_ / "out.npy").real, (std::vector<double>{3, 4, -3}));
}

TEST_F(Formats, ProductsEqualTheReferenceFiles) {
  struct Product {
    const char* input;
    const char* file;
    std::vector<std::string> unit;
  };
  for (const Product& one :
       {Product{"e5m2", "e5m2_mulE5M2_addE6M5_sub", {"--mul", "e5m2", "--acc", "e6m5"}},
        Product{"e5m2", "e5m2_mulE6M5_addE6M5_sub", {"--mul", "e6m5", "--acc", "e6m5"}},
        Product{"e4m3", "e4m3_mulE4M3_addE5M10_sub", {"--mul", "e4m3", "--acc", "e5m10"}},
        Product{"e4m2", "e4m2_mulE5M5_addE5M5_sub", {"--mul", "e5m5", "--acc", "e5m5"}},
        Product{"e5m2", "e5m2_fmaE5M10_sub", {"--fma", "--acc", "e5m10"}},
        Product{"e5m2", "e5m2_fxp_Q8.13", {"--mul", "q8.13", "--acc", "q8.13"}}}) {
    for (const char* instructions : {"best", "portable"}) {
      std::vector<std::string> arguments{"--gemm",
                                         input(std::string("gemm_A_") + one.input),
                                         input(std::string("gemm_B_") + one.input),
                                         "--instructions",
                                         instructions,
                                         "--jobs",
                                         "2",
                                         "-o",
                                         "c.npy"};
      arguments.insert(arguments.end(), one.unit.begin(), one.unit.end());
      const Ran ran = run(arguments);
      ASSERT_EQ(ran.code, 0) << ran.err;
      EXPECT_NE(ran.out.find("GMAC/s"), std::string::npos) << ran.out;
      EXPECT_TRUE(read_file(scratch_ / "c.npy") == fixture(std::string("gemm_") + one.file))
          << one.file;
    }
  }
}

// (1 + 2^-3)^2 = 1.265625 is a product of 7 bits; e4m3 has 4.
TEST_F(Formats, ProductsAreComparedWithTheExactOne) {
  array("a.npy", {1, 2}, {1.125, 1});
  array("b.npy", {2, 1}, {1.125, 16}, NpyType::u1); // 1 and 16
  array("r.npy", {2, 1}, {1.125, 16});
  const Json found =
      answer({"--gemm", "a.npy", "r.npy", "--mul", "e4m3", "--acc", "e5m10", "-o", "c.npy"});
  EXPECT_EQ(read_npy(scratch_ / "c.npy").real, std::vector<double>{17.25});
  EXPECT_EQ(found.at("errors").at("largest_absolute"), 0.015625); // 1.265625 became 1.25
  EXPECT_EQ(found.at("errors").at("rms"), 0.015625);
  EXPECT_EQ(found.at("shape"), Json({{"m", 1}, {"n", 1}, {"k", 2}}));
  EXPECT_EQ(found.at("unit").at("product"), "e4m3");
  const auto product = [&](const std::vector<std::string>& unit) {
    std::vector<std::string> arguments{"--gemm", "a.npy", "b.npy", "-o", "c.npy"};
    arguments.insert(arguments.end(), unit.begin(), unit.end());
    answer(arguments);
    return read_npy(scratch_ / "c.npy").real.at(0);
  };
  EXPECT_EQ(product({"--mul", "exact", "--acc", "exact"}), 17.125);
  EXPECT_EQ(product({"--mul", "exact", "--acc", "hybrid"}), 17.125);
  EXPECT_EQ(product({"--mul", "e4m3", "--variant", "exact", "--acc", "e5m2"}), 16);
  EXPECT_EQ(product({"--mul", "e5m2", "--variant", "cfg5", "--acc", "e6m5"}), 17); // 1.125 -> 1
  EXPECT_EQ(product({"--operands", "e5m2", "--mul", "exact", "--acc", "e6m5"}), 17);
  EXPECT_EQ(product({"--operands", "q5.1", "--mul", "exact", "--acc", "fp32", "--saturate"}), 16.5);
  EXPECT_EQ(answer({"--gemm", "a.npy", "b.npy", "--operands", "bf16", "--mul", "exact", "--acc",
                    "fp32", "-o", "c.npy"})
                .at("unit")
                .at("operands"),
            "bf16");
  EXPECT_EQ(product({"--fma", "--acc", "fp64"}), 17.125);
  EXPECT_EQ(product({"--mul", "mxfp8_e4m3", "--acc", "hybrid"}), 17.125);
  EXPECT_EQ(product({"--mul", "mxfp8_e4m3", "--acc", "fp32", "--lanes", "8"}), 17.125);
  EXPECT_EQ(product({"--mul", "int8", "--block", "1x2", "--lanes", "2", "--acc", "fp32"}), 17.125);
}

TEST_F(Formats, EmptyArraysHaveAnswers) {
  array("none.npy", {0, 3}, {});
  array("flat.npy", {3, 0}, {});
  array("one.npy", {}, {0.3});
  for (const char* format : {"fp8_e4m3", "mxfp8_e4m3", "nvfp4"}) {
    answer({"--quantise", "none.npy", "--format", format, "-o", "o.npy", "--codes", "c.npy"});
    EXPECT_EQ(read_npy(scratch_ / "o.npy").shape, (std::vector<std::int64_t>{0, 3}));
    answer({"--quantise", "one.npy", "--format", format, "-o", "o.npy"});
    EXPECT_TRUE(run({"--quantise", "one.npy", "--format", format, "-o", "o.npy"}).code == 0);
    answer({"--gemm", "flat.npy", "none.npy", "--mul", format, "--acc", "fp32", "-o", "o.npy"});
    EXPECT_EQ(read_npy(scratch_ / "o.npy").real, std::vector<double>(9, 0.0));
    answer({"--gemm", "none.npy", "flat.npy", "--mul", format, "--acc", "fp32", "-o", "o.npy"});
    EXPECT_EQ(read_npy(scratch_ / "o.npy").shape, (std::vector<std::int64_t>{0, 0}));
  }
}

struct Wrong {
  std::vector<std::string> arguments;
  std::string message;
};

TEST_F(Formats, BadInputIsLocatedAndWritesNothing) {
  array("in.npy", {2, 3}, {1, 2, 3, 4, std::nan(""), 6});
  array("line.npy", {3}, {1, 2, 3});
  array("other.npy", {4, 2}, std::vector<double>(8, 1.0));
  array("square.npy", {3, 64}, std::vector<double>(192, 1.0));
  array("tall.npy", {64, 3}, std::vector<double>(192, 1.0));
  std::string complex = npy_bytes(std::vector<std::int64_t>{1}, std::vector<double>{1});
  complex.replace(complex.find("<f8"), 3, "<c8");
  scratch_.file("complex.npy", complex);
  const auto quantise = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--quantise", "in.npy", "-o", "out.npy"});
    return more;
  };
  const auto multiply = [](const char* a, const char* b, std::vector<std::string> more) {
    more.insert(more.begin(), {"--gemm", a, b, "-o", "out.npy"});
    return more;
  };
  const std::vector<Wrong> cases{
      {{"fp9"}, "error: formats: there is no format 'fp9' (did you mean 'fp"},
      {{"e20m20"}, "error: formats: e20m20 has more than 32 bits, or 11 of exponent"},
      {{"--round", "one", "--format", "fp16"}, "error: --round: 'one' is not a number"},
      {{"--round", "1", "--format", "fp17"}, "error: --format: there is no format 'fp17'"},
      {{"--round", "1", "--format", "int33"}, "error: --format: int33 has more than 32 bits"},
      {{"--round", "1", "--format", "int8", "--block", "2x2"},
       "error: --block: blocks of 2 x 2 need two axes: --round has shape [1]"},
      {quantise({"--format", "mxfp8_e4m4"}), "error: --format: there is no format 'mxfp8_e4m4' "
                                             "(did you mean 'mxfp8_e4m3'?)"},
      {quantise({"--format", "fp8", "--block", "0x8"}),
       "error: --block: '0x8' is not a shape: rows and columns, each at least 1, as in 1x32"},
      {quantise({"--format", "fp8", "--block", "8"}), "error: --block: '8' is not a shape"},
      {quantise({"--format", "mxint8", "--axes", "0,2"}),
       "error: --axes: there is no axis 2: in.npy has shape [2, 3]"},
      {quantise({"--format", "mxint8", "--axes", "1,-1"}), "error: --axes: 1 and -1 are the same"},
      {quantise({"--format", "fp8", "--rounding", "up"}),
       "error: --rounding: unknown rounding mode 'up'"},
      {quantise({"--format", "fp8", "--rounding", "stochastic:25"}), "random bits are not 1 to 24"},
      {quantise({"--format", "int8", "--codes", "c.npy"}),
       "error: in.npy [element [1, 1]]: is not a number, for which int8 has no code"},
      {quantise({"--format", "fp64", "--codes", "c.npy"}),
       "error: --codes: codes of fp64 have 64 bits"},
      {quantise({"--format", "fp8", "--scales", "s.npy"}), "error: --scales: fp8 has no blocks"},
      {quantise({"--format", "fp8", "--rounding", "hysteresis", "--before", "line.npy"}),
       "error: line.npy: has shape [3], but in.npy has [2, 3]"},
      {{"--quantise", "line.npy", "--format", "fp8_e4m3_128x128", "-o", "out.npy"},
       "error: --format: blocks of 128 x 128 need two axes: line.npy has shape [3]"},
      {{"--quantise", "complex.npy", "--format", "fp8", "-o", "out.npy"},
       "error: complex.npy: not a .npy array: element type 'c8' is not supported"},
      {{"--quantise", "absent.npy", "--format", "fp8", "-o", "out.npy"}, "error: absent.npy: "},
      {multiply("in.npy", "other.npy", {"--mul", "fp8", "--acc", "fp32"}),
       "error: in.npy: has shape [2, 3], which cannot be multiplied by other.npy with [4, 2]"},
      {multiply("line.npy", "in.npy", {"--mul", "fp8", "--acc", "fp32"}),
       "error: line.npy: has shape [3]: a matrix has two axes"},
      {multiply("complex.npy", "in.npy", {"--mul", "fp8", "--acc", "fp32"}),
       "error: complex.npy: not a .npy array"},
      {multiply("in.npy", "other.npy", {"--mul", "fp8", "--acc", "fp31"}),
       "error: --acc: there is no format 'fp31' (did you mean 'fp32'?)"},
      {multiply("in.npy", "other.npy", {"--operands", "bf17", "--mul", "exact", "--acc", "fp32"}),
       "error: --operands: there is no number format 'bf17' (did you mean 'bf16'?)"},
      {multiply("in.npy", "other.npy", {"--operands", "fp64", "--mul", "exact", "--acc", "fp32"}),
       "error: --operands: fp64 has numbers that single precision lacks"},
      {multiply("in.npy", "other.npy", {"--mul", "q40.1", "--acc", "fp32"}),
       "error: --mul: q40.1 has more than 32 bits"},
      {multiply("in.npy", "other.npy", {"--mul", "fp8", "--acc", "q40.1"}),
       "error: --acc: q40.1 has more than 32 bits"},
      {multiply("in.npy", "other.npy",
                {"--mul", "fp8", "--acc", "fp32", "--rounding", "hysteresis"}),
       "error: --rounding: sums have no previous value for hysteresis"},
      {multiply("square.npy", "tall.npy", {"--mul", "mxfp8_e4m3", "--acc", "fp32", "--lanes", "5"}),
       "error: --lanes: 5 products at a time do not divide a block of 32"},
      {multiply("in.npy", "other.npy", {"--mul", "int8", "--block", "1x2", "--acc", "hybrid"}),
       "error: --lanes: 4 products at a time do not divide a block of 2"},
      {multiply("in.npy", "other.npy", {"--mul", "fp8", "--acc", "fp32", "--variant", "cfg3"}),
       "error: --variant: multiplier cfg3 is for operands in eXmY"},
      {multiply("in.npy", "other.npy", {"--mul", "e5m2", "--acc", "fp64", "--rounding", "zero"}),
       "error: --acc: fp64 is the machine's arithmetic"},
  };
  const std::size_t before = files();
  for (const Wrong& wrong : cases) {
    const Ran ran = run(wrong.arguments);
    EXPECT_EQ(ran.code, 3) << wrong.message << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << wrong.message;
    EXPECT_NE(ran.err.find(wrong.message), std::string::npos) << wrong.message << "\n" << ran.err;
    EXPECT_EQ(files(), before) << wrong.message;
  }
}

TEST_F(Formats, OptionsOfOtherQuestionsAreRefused) {
  const std::vector<Wrong> cases{
      {{"--round", "1"}, "--format is required"},
      {{"--quantise", "a", "--format", "fp8"}, "--output is required"},
      {{"--gemm", "a", "b", "--acc", "fp32", "-o", "c"}, "--mul, or --fma, is required"},
      {{"--gemm", "a", "b", "--mul", "fp8", "-o", "c"}, "--acc is required"},
      {{"--gemm", "a", "--mul", "fp8"}, "--gemm"},
      {{"fp8", "--round", "1", "--format", "fp8"}, "--round and formats exclude each other"},
      {{"--round", "1", "--quantise", "a", "--format", "fp8", "-o", "c"},
       "--round and --quantise exclude each other"},
      {{"fp8", "--seed", "1"}, "--seed is for --round, --quantise or --gemm"},
      {{"--round", "1", "--format", "fp8", "--lanes", "2"}, "--lanes is for --gemm"},
      {{"--round", "1", "--format", "fp8", "--full-range"}, "--full-range requires a block format"},
      {{"--quantise", "a", "--format", "fp8", "--before", "b", "-o", "c"},
       "--before is for --rounding hysteresis"},
      {{"--quantise", "a", "--format", "fp8", "-o", "c", "--codes", "c"},
       "two results would be written to 'c'"},
      {{"--quantise", "a", "--format", "fp8", "-o", "-"}, "arrays are written to files"},
      {{"--gemm", "a", "b", "--mul", "exact", "--variant", "cfg1", "--acc", "fp32", "-o", "c"},
       "--variant requires a format in --mul"},
      {{"--gemm", "a", "b", "--mul", "exact", "--block", "1x4", "--acc", "fp32", "-o", "c"},
       "--block requires a format in --mul"},
      {{"--gemm", "a", "b", "--mul", "mxint8", "--variant", "exact", "--acc", "fp32", "-o", "c"},
       "leave out --variant"},
      {{"--gemm", "a", "b", "--mul", "mxint8", "--operands", "bf16", "--acc", "fp32", "-o", "c"},
       "leave out --operands"},
      {{"--round", "1", "--format", "fp8", "--operands", "fp8"}, "--operands is for --gemm"},
      {{"--gemm", "a", "b", "--mul", "fp8", "--acc", "hybrid", "-o", "c"},
       "--acc hybrid has exact"},
      {{"--gemm", "a", "b", "--mul", "fp8", "--acc", "fp32", "--lanes", "0", "-o", "c"}, "--lanes"},
      {{"--quantise", "a", "--format", "fp8", "--scale-mode", "up", "-o", "c"}, "--scale-mode"},
  };
  for (const Wrong& wrong : cases) {
    const Ran ran = run(wrong.arguments);
    EXPECT_EQ(ran.code, 2) << wrong.message << "\n" << ran.err;
    EXPECT_NE(ran.err.find(wrong.message), std::string::npos) << wrong.message << "\n" << ran.err;
    EXPECT_EQ(files(), 0U) << wrong.message;
  }
}

// Full mantissas: every product goes through the exact accumulator, number by number.
TEST_F(Formats, InterruptedProductsLeaveNothing) {
  constexpr std::int64_t kSize = 400;
  std::vector<double> numbers;
  for (std::uint64_t i = 0; i < kSize * kSize; ++i)
    numbers.push_back(static_cast<double>(random_bits(1, i)));
  const std::string matrix = array("m.npy", {kSize, kSize}, numbers, NpyType::f8);
  const Ran ran = run_signalled({"formats", "--gemm", matrix, matrix, "--mul", "exact", "--acc",
                                 "exact", "-o", scratch_ / "c.npy", "--json", scratch_ / "c.json"},
                                SIGINT, 0.2);
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(files(), 1U);
}

} // namespace
} // namespace monet::test
