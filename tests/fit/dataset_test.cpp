#include "monet/base/errors.hpp"
#include "monet/fit/dataset.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

namespace monet {
namespace {

using Numbers = std::vector<double>;

/// Two images of 2 channels, 2 x 3: bytes 0, 1, 2 ... 23.
Dataset small() {
  Dataset data{{2, 2, 3}, 4, {}, {3, 1}};
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 24; ++i)
    pixels.push_back(static_cast<std::uint8_t>(i));
  data.pixels = pixels;
  return data;
}

Dataset small_floats() {
  Dataset data = small();
  std::vector<float> pixels;
  for (int i = 0; i < 24; ++i)
    pixels.push_back(static_cast<float>(i));
  data.pixels = pixels;
  return data;
}

Numbers filled(const Dataset& data, std::vector<std::int64_t> images, const ImageView& view = {}) {
  Numbers numbers(images.size() * static_cast<std::size_t>(data.shape.size()));
  fill_images(data, images, view, std::span<double>(numbers));
  return numbers;
}

TEST(Dataset, BytesAreSharesOf255) {
  const Numbers numbers = filled(small(), {1, 0, 1});
  ASSERT_EQ(numbers.size(), 36U);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(numbers[i], static_cast<double>(12 + i) / 255);
    EXPECT_EQ(numbers[12 + i], static_cast<double>(i) / 255);
    EXPECT_EQ(numbers[24 + i], numbers[i]);
  }
  EXPECT_EQ(labels_of(small(), std::vector<std::int64_t>{1, 0, 1}),
            (std::vector<std::int64_t>{1, 3, 1}));
}

TEST(Dataset, IsNormalisedChannelByChannel) {
  ImageView view;
  view.normalisation = {{1, 10}, {2, 0.5}};
  const Numbers numbers = filled(small_floats(), {0}, view);
  EXPECT_EQ(numbers, (Numbers{-0.5, 0, 0.5, 1, 1.5, 2, -8, -6, -4, -2, 0, 2}));
  view.normalisation = {{3}, {2}}; // one for all
  EXPECT_EQ(filled(small_floats(), {0}, view)[11], 4);
  view.normalisation = {{0.5}, {0.25}};
  EXPECT_EQ(filled(small(), {1}, view)[11], (23 / 255.0 - 0.5) / 0.25);
}

TEST(Dataset, GivesSinglesToo) {
  ImageView view;
  view.normalisation = {{0.4914}, {0.247}};
  const std::vector<std::int64_t> images{1, 0};
  const Numbers doubles = filled(small(), images, view);
  std::vector<float> singles(doubles.size());
  fill_images(small(), images, view, std::span<float>(singles));
  for (std::size_t i = 0; i < singles.size(); ++i)
    EXPECT_EQ(singles[i], static_cast<float>(doubles[i]));
}

TEST(Dataset, RefusesWhatDoesNotFit) {
  Numbers numbers(12);
  const auto fill = [&](std::vector<std::int64_t> images, const ImageView& view) {
    fill_images(small(), images, view, std::span<double>(numbers));
  };
  EXPECT_NO_THROW(fill({0}, {}));
  EXPECT_THROW(fill({2}, {}), InternalError);
  EXPECT_THROW(fill({-1}, {}), InternalError);
  EXPECT_THROW(fill({0, 1}, {}), InternalError);
  EXPECT_THROW(fill({0}, {{{1, 2, 3}, {1}}, {}, 0, 0}), InternalError);
  EXPECT_THROW(labels_of(small(), std::vector<std::int64_t>{2}), InternalError);

  const auto broken = [](auto change) {
    Dataset data = small();
    change(data);
    return data;
  };
  EXPECT_NO_THROW(verify(small()));
  EXPECT_THROW(verify(broken([](Dataset& d) { d.labels = {3}; })), InternalError);
  EXPECT_THROW(verify(broken([](Dataset& d) { d.classes = 3; })), InternalError);
  EXPECT_THROW(verify(broken([](Dataset& d) { d.labels = {-1, 0}; })), InternalError);
  EXPECT_THROW(verify(broken([](Dataset& d) { d.shape.width = 4; })), InternalError);
  EXPECT_THROW(verify(Dataset{}), InternalError);
}

// Channel 0 holds 0 .. 5 and 12 .. 17: mean 8.5, variance 36 + 35 / 12; channel 1 is 6 above.
TEST(Dataset, MeasuresItself) {
  const Normalisation floats = measure(small_floats());
  EXPECT_EQ(floats.mean, (Numbers{8.5, 14.5}));
  EXPECT_NEAR(floats.deviation[0], std::sqrt(36 + 35 / 12.0), 1e-12);
  EXPECT_EQ(floats.deviation[1], floats.deviation[0]);
  const Normalisation bytes = measure(small());
  EXPECT_NEAR(bytes.mean[1], 14.5 / 255, 1e-15);
  EXPECT_NEAR(bytes.deviation[1], floats.deviation[0] / 255, 1e-15);

  Dataset even = small();
  even.pixels = std::vector<float>(24, 0.1F);
  EXPECT_EQ(measure(even).deviation, (Numbers{1, 1}));
}

RC_GTEST_PROP(Dataset, MeasuredNumbersHaveMean0AndDeviation1, ()) {
  Dataset data{{1, 4, 5}, 2, {}, {0, 1, 1}};
  data.pixels =
      *rc::gen::container<std::vector<std::uint8_t>>(60, rc::gen::arbitrary<std::uint8_t>());
  ImageView view;
  view.normalisation = measure(data);
  double sum = 0, squares = 0;
  const Numbers numbers = filled(data, {0, 1, 2}, view);
  for (const double number : numbers) {
    sum += number;
    squares += number * number;
  }
  RC_ASSERT(std::abs(sum / 60) < 1e-9);
  RC_ASSERT(std::abs(squares / 60 - 1) < 1e-9 || squares == 0);
}

// Computed apart, with random_bits() in Python: bit 0 of the first number of the stream, then two
// places of 2 * 4 + 1.
TEST(Augmentation, IsTheSameEverywhere) {
  const Augmentation both{true, 4};
  EXPECT_EQ(change_of(both, 9, 0, 0), (ImageChange{false, 0, -2}));
  EXPECT_EQ(change_of(both, 9, 0, 1), (ImageChange{true, 1, -1}));
  EXPECT_EQ(change_of(both, 9, 1, 0), (ImageChange{false, 3, -3}));
  EXPECT_EQ(change_of(both, 9, 3, 77), (ImageChange{false, -1, -2}));
  EXPECT_EQ(change_of({false, 4}, 9, 0, 1), (ImageChange{false, 1, -1}));
  EXPECT_EQ(change_of({true, 0}, 9, 0, 1), (ImageChange{true, 0, 0}));
  EXPECT_EQ(change_of({}, 9, 0, 1), ImageChange{});
}

TEST(Augmentation, HasNoFavourites) {
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, int> times;
  constexpr int kEach = 200; // deviation 14
  for (std::int64_t image = 0; image < 18 * kEach; ++image) {
    const ImageChange change = change_of({true, 1}, 3, image % 4, image);
    ++times[{change.mirrored, change.down, change.right}];
  }
  ASSERT_EQ(times.size(), 18U);
  for (const auto& [change, count] : times)
    EXPECT_NEAR(count, kEach, 5 * 14);
}

/// The definition: pixel (y, x) of an image with a border of zeros, mirrored or not.
double expected(const Dataset& data, std::int64_t image, const ImageChange& change,
                std::int64_t channel, std::int64_t y, std::int64_t x) {
  const ImageShape& shape = data.shape;
  const std::int64_t row = y + change.down;
  const std::int64_t column = (change.mirrored ? shape.width - 1 - x : x) + change.right;
  if (row < 0 || row >= shape.height || column < 0 || column >= shape.width)
    return 0;
  return data.pixel(image, (channel * shape.height + row) * shape.width + column);
}

TEST(Augmentation, MovesAndMirrorsImages) {
  const Dataset data = small_floats();
  const ImageShape& shape = data.shape;
  ImageView view{{{2}, {1}}, {true, 1}, 5, 0};
  bool mirrored = false, moved = false;
  for (view.epoch = 0; view.epoch < 20; ++view.epoch) {
    const Numbers numbers = filled(data, {1, 0}, view);
    const ImageChange change = change_of(view.augmentation, view.seed, view.epoch, 1);
    mirrored = mirrored || change.mirrored;
    moved = moved || (change.down != 0 && change.right != 0);
    for (std::int64_t i = 0; i < shape.size(); ++i) {
      const std::int64_t x = i % shape.width, y = i / shape.width % shape.height;
      // What is black is black before normalisation.
      EXPECT_EQ(numbers[static_cast<std::size_t>(i)], expected(data, 1, change, i / 6, y, x) - 2);
    }
    // Neither the batch nor the place in it matters.
    const Numbers alone = filled(data, {0}, view);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), numbers.begin() + 12));
  }
  EXPECT_TRUE(mirrored && moved);
}

} // namespace
} // namespace monet
