#include "fit/image_files.hpp"
#include "fit/shared/readers.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace monet::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Labels = std::vector<std::int32_t>;

const Bytes& bytes_in(const Dataset& data) {
  return std::get<Bytes>(data.pixels);
}

std::string of_cifar(const std::string& bytes) {
  return error_of([&] { parse_cifar10({"c.bin", bytes}); });
}

TEST(Cifar10, ReadsRecords) {
  const std::string file = cifar_record(9, 0) + cifar_record(0, 7);
  const Dataset data = parse_cifar10({"c.bin", file});
  verify(data);
  EXPECT_EQ(data.shape, (ImageShape{3, 32, 32}));
  EXPECT_EQ(data.classes, 10);
  EXPECT_EQ(data.labels, (Labels{9, 0}));
  ASSERT_EQ(bytes_in(data).size(), 6144U);
  for (std::size_t i = 0; i < 3072; ++i) {
    EXPECT_EQ(bytes_in(data)[i], i % 256);
    EXPECT_EQ(bytes_in(data)[3072 + i], (i + 7) % 256);
  }
  // Channel 1, row 2, column 3 of image 1: byte 1024 + 67 + 7 = 1098 = 4 * 256 + 74.
  EXPECT_EQ(data.pixel(1, 1024 + 2 * 32 + 3), 74 / 255.0);
}

TEST(Cifar10, RefusesOtherFiles) {
  const std::string good = cifar_record(3, 0);
  EXPECT_EQ(of_cifar(good), "no error");
  EXPECT_EQ(of_cifar(""), "c.bin [byte 0]: there are no records");
  EXPECT_EQ(of_cifar(good + good.substr(0, 100)),
            "c.bin [byte 3073]: record 1 has 100 bytes of 3073 (CIFAR-10's binary version has "
            "records of 1 + 3072 bytes)");
  EXPECT_EQ(of_cifar(good.substr(1)).substr(0, 50),
            "c.bin [byte 0]: record 0 has 3072 bytes of 3073 (C");
  EXPECT_EQ(of_cifar(good + good + cifar_record(10, 0)),
            "c.bin [byte 6146]: label 10 of record 2 is not one of 0 to 9");
}

TEST(Cifar10, FilesFollowEachOther) {
  Dataset data = parse_cifar10({"a.bin", cifar_record(1, 1)});
  append(data, parse_cifar10({"b.bin", cifar_record(2, 2) + cifar_record(3, 3)}), "b.bin");
  verify(data);
  EXPECT_EQ(data.labels, (Labels{1, 2, 3}));
  EXPECT_EQ(bytes_in(data)[2 * 3072], 3);
  keep_first(data, 2);
  verify(data);
  EXPECT_EQ(data.labels, (Labels{1, 2}));
  EXPECT_THROW(keep_first(data, 3), InternalError);
  Dataset other = data;
  other.classes = 9;
  EXPECT_THROW(append(data, other, "o"), InternalError);
}

const std::string kIdxImages =
    idx_file(8, {2, 2, 3}, bytes_of({0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255}));
const std::string kIdxLabels = idx_file(8, {2}, bytes_of({1, 4}));

std::string of_idx(const std::string& images, const std::string& labels = kIdxLabels,
                   std::int64_t classes = 0) {
  return error_of([&] { parse_idx({"i", images}, {"l", labels}, classes); });
}

TEST(Idx, ReadsPairs) {
  const Dataset grey = parse_idx({"i", kIdxImages}, {"l", kIdxLabels}, 0);
  verify(grey);
  EXPECT_EQ(grey.shape, (ImageShape{1, 2, 3}));
  EXPECT_EQ(grey.classes, 5);
  EXPECT_EQ(grey.labels, (Labels{1, 4}));
  EXPECT_EQ(bytes_in(grey), (Bytes{0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255}));
  EXPECT_EQ(grey.pixel(1, 5), 1.0);

  const Dataset colour =
      parse_idx({"i", idx_file(8, {2, 3, 1, 2}, "abcdefghijkl")}, {"l", kIdxLabels}, 10);
  EXPECT_EQ(colour.shape, (ImageShape{3, 1, 2}));
  EXPECT_EQ(colour.classes, 10);
}

TEST(Idx, RefusesOtherHeaders) {
  EXPECT_EQ(of_idx(""), "i [byte 0]: the file ends before its magic number");
  EXPECT_EQ(of_idx(kIdxImages.substr(0, 3)), "i [byte 3]: the file ends before its magic number");
  EXPECT_EQ(of_idx(bytes_of({0x1F, 0x8B, 8, 0})),
            "i [byte 0]: the file is compressed (unpack it with gunzip)");
  EXPECT_EQ(of_idx("\x01" + kIdxImages.substr(1)),
            "i [byte 0]: not an IDX file: it does not begin with two zeros");
  EXPECT_EQ(of_idx(idx_file(0x0D, {2, 2, 3}, "")),
            "i [byte 2]: elements are floats of 4 bytes, not unsigned bytes");
  EXPECT_EQ(of_idx(idx_file(0x0A, {2, 2, 3}, "")), "i [byte 2]: 0x0A is not a type of elements");
  EXPECT_EQ(of_idx(kIdxImages.substr(0, 15)),
            "i [byte 15]: the file ends before the sizes of its 3 dimensions");
}

TEST(Idx, RefusesOtherSizes) {
  EXPECT_EQ(of_idx(kIdxLabels), "i [byte 8]: images of 2 are neither N x H x W nor N x C x H x W");
  EXPECT_EQ(of_idx(idx_file(8, {}, "")),
            "i [byte 4]: images of no dimension are neither N x H x W nor N x C x H x W");
  EXPECT_EQ(of_idx(kIdxImages.substr(0, 20)),
            "i [byte 20]: images of 2 x 2 x 3 are more than the 4 bytes that are there");
  EXPECT_EQ(of_idx(kIdxImages + "x"),
            "i [byte 28]: images of 2 x 2 x 3 end before the file: 1 bytes follow");
  EXPECT_EQ(of_idx(idx_file(8, {0, 2, 3}, "")), "i [byte 16]: images of 0 x 2 x 3 have no pixels");
  EXPECT_EQ(of_idx(idx_file(8, {2, 0, 3}, "")), "i [byte 16]: images of 2 x 0 x 3 have no pixels");
  // 2^128 elements: the product is in no integer.
  const std::uint32_t most = 0xFFFFFFFF;
  EXPECT_EQ(of_idx(idx_file(8, {most, most, most, most}, "abc")),
            "i [byte 23]: images of 4294967295 x 4294967295 x 4294967295 x 4294967295 are more "
            "than the 3 bytes that are there");
}

TEST(Idx, RefusesOtherLabels) {
  EXPECT_EQ(of_idx(kIdxImages, kIdxImages), "l [byte 3]: labels have 3 dimensions, not 1");
  EXPECT_EQ(of_idx(kIdxImages, kIdxLabels.substr(0, 9)),
            "l [byte 8]: 2 labels are expected, 1 are there");
  EXPECT_EQ(of_idx(kIdxImages, kIdxLabels + "x"), "l [byte 8]: 2 labels are expected, 3 are there");
  EXPECT_EQ(of_idx(kIdxImages, idx_file(8, {1}, "\x01")), "l: 1 labels for 2 images");
  EXPECT_EQ(of_idx(kIdxImages, idx_file(8, {0}, "")), "l: there are no labels");
  EXPECT_EQ(of_idx(kIdxImages, kIdxLabels, 5), "no error");
  EXPECT_EQ(of_idx(kIdxImages, kIdxLabels, 4), "l [image 1]: label 4 is not one of 0 to 3");
}

template <class Number>
std::string raw(std::initializer_list<Number> numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  std::memcpy(bytes.data(), numbers.begin(), bytes.size());
  return bytes;
}

const std::string kNpyLabels = npy_file("<i8", "(2,)", raw<std::int64_t>({2, 0}));

Dataset npy(const std::string& images, const std::string& labels = kNpyLabels,
            std::int64_t classes = 0) {
  return parse_npy_images({"i.npy", images}, {"l.npy", labels}, classes);
}
std::string of_npy(const std::string& images, const std::string& labels = kNpyLabels,
                   std::int64_t classes = 0) {
  return error_of([&] { npy(images, labels, classes); });
}

TEST(NpyImages, ReadsBytesAndFloats) {
  const Dataset bytes = npy(npy_file("|u1", "(2, 3, 1, 2)", "abcdefghijk\xFF"));
  verify(bytes);
  EXPECT_EQ(bytes.shape, (ImageShape{3, 1, 2}));
  EXPECT_EQ(bytes.classes, 3);
  EXPECT_EQ(bytes.labels, (Labels{2, 0}));
  EXPECT_EQ(bytes.pixel(1, 5), 1.0);
  EXPECT_EQ(bytes.pixel(0, 1), 'b' / 255.0);

  const Dataset singles = npy(npy_file("<f4", "(2, 1, 2)", raw<float>({0.5F, -1.5F, 300, 0.1F})),
                              npy_file("|u1", "(2,)", bytes_of({0, 200})));
  verify(singles);
  EXPECT_EQ(singles.shape, (ImageShape{1, 1, 2}));
  EXPECT_EQ(singles.classes, 201);
  EXPECT_EQ(std::get<std::vector<float>>(singles.pixels),
            (std::vector<float>{0.5F, -1.5F, 300, 0.1F}));
  EXPECT_EQ(singles.pixel(1, 0), 300);

  const Dataset doubles = npy(npy_file("<f8", "(2, 1, 1)", raw<double>({0.1, 1e-300})));
  EXPECT_EQ(std::get<std::vector<float>>(doubles.pixels), (std::vector<float>{0.1F, 0}));
}

TEST(NpyImages, RefusesOtherArrays) {
  EXPECT_EQ(of_npy("PK"), "i.npy: not a .npy array: the file does not begin as one");
  EXPECT_EQ(of_npy(npy_file("<i8", "(2, 1, 1)", std::string(16, '\0'))),
            "i.npy: images of elements 'i8' are not read (save them as uint8, float32 or float64)");
  EXPECT_EQ(of_npy(npy_file(">f4", "(2, 1, 1)", std::string(8, '\0'))),
            "i.npy: images of elements '>f4' are not read (save them as uint8, float32 or "
            "float64)");
  EXPECT_EQ(of_npy(npy_file("|u1", "(2, 1, 1)", "ab", true)),
            "i.npy: images are stored column by column (save numpy.ascontiguousarray(images))");
  const std::string header = npy_file("<f4", "(2, 1, 1)", "");
  EXPECT_EQ(of_npy(header + "12345"), "i.npy [byte " + std::to_string(header.size() + 5) +
                                          "]: images of 2 x 1 x 1 are more than the 5 bytes that "
                                          "are there");
  EXPECT_EQ(of_npy(header + "123456789"), "i.npy [byte " + std::to_string(header.size() + 8) +
                                              "]: images of 2 x 1 x 1 end before the file: 1 "
                                              "bytes follow");
  const std::string huge = npy_file("|u1", "(4294967296, 4294967296, 1)", "abc");
  EXPECT_NE(of_npy(huge).find("are more than the 3 bytes"), std::string::npos);
  EXPECT_NE(of_npy(npy_file("|u1", "(2, 2)", "abcd")).find("are neither N x H x W"),
            std::string::npos);
  EXPECT_NE(of_npy(npy_file("|u1", "(0, 2, 2)", "")).find("have no pixels"), std::string::npos);
}

TEST(NpyImages, RefusesWhatIsNoNumber) {
  const std::string header = npy_file("<f4", "(2, 1, 1)", "");
  const std::string second = "i.npy [byte " + std::to_string(header.size() + 4) + "]: pixel ";
  EXPECT_EQ(of_npy(header + raw<float>({1, NAN})),
            second + "nan is not a number of single precision");
  EXPECT_EQ(of_npy(header + raw<float>({1, -INFINITY})),
            second + "-inf is not a number of single precision");
  EXPECT_NE(of_npy(npy_file("<f8", "(2, 1, 1)", raw<double>({1, 1e300}))).find("pixel 1e+300 is"),
            std::string::npos);
}

TEST(NpyImages, RefusesOtherLabels) {
  const std::string images = npy_file("|u1", "(2, 1, 1)", "ab");
  EXPECT_EQ(of_npy(images), "no error");
  EXPECT_EQ(of_npy(images, npy_file("<f8", "(2,)", raw<double>({0, 1}))),
            "l.npy: labels are floats, not integers");
  EXPECT_EQ(of_npy(images, npy_file("|u1", "(2, 1)", "ab")),
            "l.npy: labels have 2 dimensions, not 1");
  EXPECT_EQ(of_npy(images, npy_file("|u1", "(3,)", "abc")), "l.npy: 3 labels for 2 images");
  EXPECT_EQ(of_npy(images, npy_file("<i8", "(2,)", raw<std::int64_t>({0, -1}))),
            "l.npy [image 1]: label -1 is not one of 0 to 65535");
  EXPECT_EQ(of_npy(images, npy_file("<i8", "(2,)", raw<std::int64_t>({65'536, 0}))),
            "l.npy [image 0]: label 65536 is not one of 0 to 65535");
  EXPECT_EQ(of_npy(images, kNpyLabels, 2), "l.npy [image 0]: label 2 is not one of 0 to 1");
}

/// Each beginning of a file, and each file with a byte changed, is read or refused.
TEST(Readers, AnswerWhateverTheBytesAre) {
  const std::string npy_images = npy_file("<f4", "(2, 1, 1)", raw<float>({1, 2}));
  for (std::size_t length = 0; length < kIdxImages.size(); ++length)
    EXPECT_NE(of_idx(kIdxImages.substr(0, length)), "no error");
  for (std::size_t length = 0; length < kIdxLabels.size(); ++length)
    EXPECT_NE(of_idx(kIdxImages, kIdxLabels.substr(0, length)), "no error");
  for (std::size_t length = 0; length < npy_images.size(); ++length)
    EXPECT_NE(of_npy(npy_images.substr(0, length)), "no error");
  for (int flip = 1; flip < 256; flip *= 2) {
    for (std::size_t at = 0; at < 16; ++at) {
      std::string changed = kIdxImages;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      EXPECT_NE(of_idx(changed), "no error") << at;
    }
    for (std::size_t at = 0; at < npy_images.size(); ++at) {
      std::string changed = npy_images;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      of_npy(changed);
    }
  }
}

} // namespace
} // namespace monet::test
