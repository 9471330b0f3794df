#include "base/shared/npy.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

/// A file as NumPy writes it: magic, version 1.0, length, dictionary, data.
std::string file_of(std::string header, std::string_view data) {
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + std::string(data);
}

TEST(Npy, ReadsFloatsOfAllWidths) {
  const NpyArray half =
      parse_npy(file_of("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }",
                        {"\x00\x3C\x00\xC0\x01\x00", 6}),
                "h.npy");
  EXPECT_EQ(half.real, (std::vector<double>{1.0, -2.0, 0x1p-24}));
  const NpyArray single = parse_npy(
      file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", {"\x00\x00\xC0\x3F", 4}),
      "s.npy");
  EXPECT_TRUE(single.shape.empty());
  EXPECT_EQ(single.real, std::vector<double>{1.5});
}

TEST(Npy, TurnsColumnsIntoRows) {
  const NpyArray array =
      parse_npy(file_of("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }",
                        "\x01\x02\x03\x04\x05\x06"),
                "c.npy");
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_FALSE(array.is_real);
  EXPECT_EQ(array.whole, (std::vector<std::int64_t>{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(array.numbers()[1], 3.0);
}

TEST(Npy, ReadsWhatItWrites) {
  const std::vector<std::int64_t> shape{2, 2};
  const std::vector<double> numbers{1.0, -0.5, 3e300, 0.0};
  const NpyArray array = parse_npy(npy_bytes(shape, numbers), "x.npy");
  EXPECT_EQ(array.shape, shape);
  EXPECT_EQ(array.real, numbers);
  EXPECT_EQ(parse_npy(npy_bytes({}, std::vector<double>{7.0}), "x.npy").real,
            std::vector<double>{7.0});
}

TEST(Npy, TellsTheLayoutBeforeTheElements) {
  const std::string file =
      file_of("{'descr': '<f4', 'fortran_order': True, 'shape': (1000000000000, 2), }", "");
  const NpyLayout layout = npy_layout(file, "l.npy");
  EXPECT_EQ(layout.type, "f4");
  EXPECT_TRUE(layout.column_major);
  EXPECT_EQ(layout.shape, (std::vector<std::int64_t>{1'000'000'000'000, 2}));
  EXPECT_EQ(layout.data, file.size());
  EXPECT_EQ(
      npy_layout(file_of("{'descr': '>u2', 'fortran_order': False, 'shape': (), }", ""), "").type,
      ">u2");
  EXPECT_THROW(npy_layout(file.substr(0, 20), "l.npy"), InputError);
}

TEST(Npy, RefusesWhatIsNone) {
  const std::string good =
      file_of("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", "12345678");
  EXPECT_NO_THROW(parse_npy(good, "g.npy"));
  EXPECT_THROW(parse_npy("", "e.npy"), InputError);
  EXPECT_THROW(parse_npy(good + "9", "long.npy"), InputError);
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_THROW(parse_npy(good.substr(0, length), "cut.npy"), InputError) << length;
  for (const char* header :
       {"{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, }", "{'shape': (1,)}"})
    EXPECT_THROW(parse_npy(file_of(header, "12345678"), "bad.npy"), InputError) << header;
}

} // namespace
} // namespace monet
