#include "base/shared/fnv1a.hpp"

#include "monet/base/errors.hpp"
#include "monet/fit/dataset.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace monet {
namespace MONET_TEST_FILE {

const std::vector<std::uint8_t>& bytes_in(const Dataset& data) {
  return std::get<std::vector<std::uint8_t>>(data.pixels);
}

std::uint64_t hash_of(const Dataset& data) {
  const auto& bytes = bytes_in(data);
  return fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// From tools/draw_shapes.py, which draws them in Python.
TEST(Shapes, AreThoseOfAnotherProgram) {
  const ShapesOptions usual;
  EXPECT_EQ(hash_of(draw_shapes(usual, 0, 100)), 0x43280819BBE6D049U);
  EXPECT_EQ(hash_of(draw_shapes(usual, kFirstTestImage, 20)), 0x5CD646FB8BDD4DCDU);
  EXPECT_EQ(hash_of(draw_shapes({{1, 11, 20}, 4, 0.0, 7}, 0, 40)), 0xAC377838A80CC7DEU);
  EXPECT_EQ(hash_of(draw_shapes({{2, 8, 8}, 10, 1.0, (1ULL << 63U) - 1}, 1000, 30)),
            0x3EF92434074861B2U);
}

TEST(Shapes, DependOnSeedAndNumberAlone) {
  const ShapesOptions options;
  const Dataset many = draw_shapes(options, 0, 40, 1);
  verify(many);
  EXPECT_EQ(bytes_in(draw_shapes(options, 0, 40, 4)), bytes_in(many));
  const Dataset some = draw_shapes(options, 17, 5);
  EXPECT_EQ(some.labels, (std::vector<std::int32_t>{7, 8, 9, 0, 1}));
  EXPECT_TRUE(std::equal(bytes_in(some).begin(), bytes_in(some).end(),
                         bytes_in(many).begin() + 17 * options.shape.size()));
  ShapesOptions other = options;
  other.seed = 2;
  EXPECT_NE(bytes_in(draw_shapes(other, 0, 40)), bytes_in(many));
}

TEST(Shapes, HaveTheirLabelsInTurn) {
  ShapesOptions options;
  options.classes = 3;
  const Dataset data = draw_shapes(options, kFirstTestImage, 7);
  EXPECT_EQ(data.classes, 3);
  EXPECT_EQ(data.labels, (std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0}));
  for (std::int64_t classes = 2; classes <= kShapeClasses; ++classes)
    EXPECT_EQ(kFirstTestImage % classes, 0);
}

// Without noise an image has its two colours and 15 steps between them.
TEST(Shapes, AreOfTwoColoursWithContrast) {
  ShapesOptions options;
  options.noise = 0;
  options.shape = {3, 32, 32};
  const Dataset data = draw_shapes(options, 0, 200);
  constexpr std::size_t plane = 32 * 32;
  for (std::size_t image = 0; image < 200; ++image) {
    int contrast = 0;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const auto* begin = bytes_in(data).data() + (3 * image + channel) * plane;
      const std::set<std::uint8_t> levels(begin, begin + plane);
      EXPECT_LE(levels.size(), 17U);
      contrast = std::max(contrast, *levels.rbegin() - *levels.begin());
    }
    EXPECT_GE(contrast, 96) << image;
  }
}

/// Pixels of a grey image that are not of the colour of most corners, as text.
std::string seen(const Dataset& data, std::size_t image) {
  const auto side = static_cast<std::size_t>(data.shape.width);
  const auto* pixels = bytes_in(data).data() + image * side * side;
  const auto [low, high] = std::minmax_element(pixels, pixels + side * side);
  const int middle = (*low + *high) / 2;
  int bright = 0;
  for (const std::size_t corner : {std::size_t{0}, side - 1, side * (side - 1), side * side - 1})
    bright += pixels[corner] > middle ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < side * side; ++i) {
    text += (pixels[i] > middle) != (bright >= 2) ? '#' : '.';
    if (i % side == side - 1)
      text += '\n';
  }
  return text;
}

/// How much of the box from the shape's first to its last row and column is filled, in percent.
int filled_percent(const std::string& picture, std::size_t side) {
  std::size_t left = side, right = 0, top = side, bottom = 0, filled = 0;
  for (std::size_t i = 0; i < picture.size(); ++i) {
    if (picture[i] != '#')
      continue;
    const std::size_t x = i % (side + 1), y = i / (side + 1);
    left = std::min(left, x);
    right = std::max(right, x);
    top = std::min(top, y);
    bottom = std::max(bottom, y);
    ++filled;
  }
  return static_cast<int>(100 * filled / ((right - left + 1) * (bottom - top + 1)));
}

// Areas of the shapes over those of their bounding boxes, unrotated and rotated by 14.3 degrees:
// disc pi / 4; ring 0.64 of it; square 1 and 0.68; frame 0.65 and 0.44; triangle 0.5 and 0.46;
// cross 0.48 and 0.45; diagonal cross 0.59 and 0.48; bars 0.6 and 0.41; checkerboard 0.5 and at
// least 0.34. Four percent more and less are for pixels.
TEST(Shapes, FillWhatTheyShould) {
  ShapesOptions options;
  options.noise = 0;
  options.shape = {1, 64, 64};
  constexpr int kBounds[kShapeClasses][2]{{74, 83}, {46, 54}, {64, 100}, {40, 69}, {42, 54},
                                          {41, 52}, {44, 63}, {37, 64},  {37, 64}, {30, 54}};
  const Dataset data = draw_shapes(options, 0, 300);
  for (std::size_t image = 0; image < 300; ++image) {
    const int percent = filled_percent(seen(data, image), 64);
    EXPECT_GE(percent, kBounds[image % 10][0]) << image << "\n" << seen(data, image);
    EXPECT_LE(percent, kBounds[image % 10][1]) << image << "\n" << seen(data, image);
  }
}

// Only the noise differs between the two: 12.75 bytes of deviation, where nothing is cut off.
TEST(Shapes, HaveNoiseOfTheStatedStrength) {
  ShapesOptions options;
  options.shape = {1, 16, 16};
  options.noise = 0;
  const Dataset plain = draw_shapes(options, 0, 2000);
  options.noise = 0.05;
  const Dataset noisy = draw_shapes(options, 0, 2000);
  double sum = 0, squares = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < bytes_in(plain).size(); ++i) {
    const int level = bytes_in(plain)[i];
    if (level < 64 || level > 191) // five deviations from what would be cut off
      continue;
    const int difference = bytes_in(noisy)[i] - level;
    sum += difference;
    squares += difference * difference;
    ++count;
  }
  ASSERT_GT(count, 100'000);
  const double mean = sum / static_cast<double>(count);
  EXPECT_NEAR(mean, 0, 0.2);
  // Rounding adds 1 / 12 to the variance.
  EXPECT_NEAR(squares / static_cast<double>(count), 12.75 * 12.75 + 1 / 12.0, 2);
}

TEST(Shapes, RefuseWhatIsOutOfRange) {
  const auto draw = [](const ShapesOptions& options, std::int64_t first = 0,
                       std::int64_t count = 1) { draw_shapes(options, first, count); };
  EXPECT_NO_THROW(draw({{1, 8, 8}, 2, 0, 0}));
  EXPECT_THROW(draw({{0, 8, 8}, 2, 0, 0}), InternalError);
  EXPECT_THROW(draw({{65, 8, 8}, 2, 0, 0}), InternalError);
  EXPECT_THROW(draw({{1, 7, 8}, 2, 0, 0}), InternalError);
  EXPECT_THROW(draw({{1, 8, 4097}, 2, 0, 0}), InternalError);
  EXPECT_THROW(draw({{1, 8, 8}, 1, 0, 0}), InternalError);
  EXPECT_THROW(draw({{1, 8, 8}, 11, 0, 0}), InternalError);
  EXPECT_THROW(draw({{1, 8, 8}, 2, 1.01, 0}), InternalError);
  EXPECT_THROW(draw({{1, 8, 8}, 2, -0.1, 0}), InternalError);
  EXPECT_THROW(draw({{1, 8, 8}, 2, 0, 0}, -1), InternalError);
  EXPECT_THROW(draw({{1, 8, 8}, 2, 0, 0}, 0, 0), InternalError);
  EXPECT_THROW(draw({{1, 8, 8}, 2, 0, 0}, 0, kMaxPixelBytes / 64 + 1), InternalError);
}

} // namespace MONET_TEST_FILE
} // namespace monet
