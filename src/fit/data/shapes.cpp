// Generates labelled images of shapes, for runs without image files. load.cpp calls it for
// `format: generated`.
#include "base/shared/checked.hpp"
#include "base/shared/parallel.hpp"
#include "base/shared/rng.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/fit/dataset.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace monet {

namespace {

constexpr std::int64_t kUnits = 64;  ///< lengths are in 64ths of a pixel
constexpr std::int64_t kSamples = 4; ///< per pixel and direction, to soften edges
constexpr std::int64_t kGrey = 255;

/// Point relative to the shape's centre: x to the right, y down.
struct Point {
  std::int64_t x = 0, y = 0;

  std::int64_t square() const { return x * x + y * y; }
  std::int64_t further() const { return std::max(std::abs(x), std::abs(y)); }
  std::int64_t nearer() const { return std::min(std::abs(x), std::abs(y)); }
};

/// Whether a length is at most the given hundredths of the radius.
bool within(std::int64_t length, std::int64_t radius, std::int64_t hundredths) {
  return length * 100 <= radius * hundredths;
}

/// Half the side of a square, in hundredths of the radius.
constexpr std::int64_t kSquare = 85;

/// Index of the stripe that contains a place, if `count` stripes divide the square.
std::int64_t stripe(std::int64_t place, std::int64_t radius, std::int64_t count) {
  return (place * 100 + kSquare * radius) * count / (2 * kSquare * radius + 1);
}
bool in_square(Point p, std::int64_t radius) {
  return within(p.further(), radius, kSquare);
}

bool in_disc(Point p, std::int64_t r) {
  return p.square() <= r * r;
}
bool in_ring(Point p, std::int64_t r) {
  return in_disc(p, r) && 100 * p.square() >= 36 * r * r;
}
bool in_frame(Point p, std::int64_t r) {
  return in_square(p, r) && !within(p.further(), r, 50);
}
/// Equilateral triangle on its base; the radius is that of its circumscribed circle.
bool in_triangle(Point p, std::int64_t r) {
  return 2 * p.y <= r && 1732 * std::abs(p.x) <= 1000 * (p.y + r);
}
bool in_cross(Point p, std::int64_t r) {
  return within(p.further(), r, 100) && within(p.nearer(), r, 28);
}
/// Cross turned by 45 degrees; turning back scales all lengths by 1.41.
bool in_diagonal_cross(Point p, std::int64_t r) {
  const Point turned{p.x + p.y, p.x - p.y};
  return within(turned.further(), r, 141) && within(turned.nearer(), r, 40);
}
bool in_horizontal_bars(Point p, std::int64_t r) {
  return in_square(p, r) && stripe(p.y, r, 5) % 2 == 0;
}
bool in_vertical_bars(Point p, std::int64_t r) {
  return in_square(p, r) && stripe(p.x, r, 5) % 2 == 0;
}
bool in_checkerboard(Point p, std::int64_t r) {
  return in_square(p, r) && (stripe(p.x, r, 4) + stripe(p.y, r, 4)) % 2 == 0;
}

/// Whether a point is in a shape.
using Shape = bool (*)(Point, std::int64_t radius);
constexpr std::array<Shape, kShapeClasses> kShapes{
    in_disc,  in_ring,           in_square,          in_frame,         in_triangle,
    in_cross, in_diagonal_cross, in_horizontal_bars, in_vertical_bars, in_checkerboard};

/// Position, size and rotation of an image's shape. The tangent of half the angle is turn / 64, so
/// that sine and cosine are fractions.
struct Pose {
  std::int64_t radius = 0, x = 0, y = 0, turn = 0;
};

Pose draw_pose(const ImageShape& shape, RandomStream& random) {
  constexpr std::int64_t kMin = 28, kMore = 17; // hundredths of the shorter side
  constexpr std::int64_t kMaxTurn = 8;          // 14.3 degrees
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
  };
  const std::int64_t side = std::min(shape.height, shape.width) * kUnits;
  Pose pose;
  pose.radius = side * kMin / 100 + below(side * kMore / 100 + 1);
  pose.x = pose.radius + below(shape.width * kUnits - 2 * pose.radius + 1);
  pose.y = pose.radius + below(shape.height * kUnits - 2 * pose.radius + 1);
  pose.turn = below(2 * kMaxTurn + 1) - kMaxTurn;
  return pose;
}

/// Number of the 16 samples of pixel (x, y) that are inside the shape.
std::int64_t coverage(Shape shape, const Pose& pose, std::int64_t x, std::int64_t y) {
  constexpr std::int64_t kOne = 64;
  const std::int64_t cosine = kOne * kOne - pose.turn * pose.turn;
  const std::int64_t sine = 2 * kOne * pose.turn;
  const std::int64_t one = kOne * kOne + pose.turn * pose.turn;
  constexpr std::int64_t kStep = kUnits / kSamples;
  std::int64_t covered = 0;
  for (std::int64_t i = 0; i < kSamples * kSamples; ++i) {
    const Point p{x * kUnits + kStep / 2 + i % kSamples * kStep - pose.x,
                  y * kUnits + kStep / 2 + i / kSamples * kStep - pose.y};
    if (!within(p.further(), pose.radius, 150))
      continue;
    const Point turned{(cosine * p.x + sine * p.y) / one, (cosine * p.y - sine * p.x) / one};
    covered += shape(turned, pose.radius) ? 1 : 0;
  }
  return covered;
}

struct Colours {
  std::array<std::int64_t, kMaxDrawnChannels> shape{}, ground{};
};

Colours draw_colours(std::int64_t channels, RandomStream& random) {
  constexpr std::int64_t kContrast = 96;
  constexpr int kTries = 8;
  Colours colours;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::int64_t contrast = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      colours.shape[c] = static_cast<std::int64_t>(random.below(kGrey + 1));
      colours.ground[c] = static_cast<std::int64_t>(random.below(kGrey + 1));
      contrast = std::max(contrast, std::abs(colours.shape[c] - colours.ground[c]));
    }
    if (contrast >= kContrast)
      return colours;
  }
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
    colours.shape[c] = (colours.ground[c] + (kGrey + 1) / 2) % (kGrey + 1);
  return colours;
}

/// Approximately normal noise: the sum of four uniform 16-bit numbers, times a deviation in
/// 65536ths.
std::int64_t draw_noise(std::int64_t deviation, RandomStream& random) {
  constexpr std::int64_t kMean = 2 * 65535;
  constexpr std::int64_t kDeviation = 37837; // 65536 / sqrt(3)
  constexpr std::int64_t kWhole = kDeviation * 65536;
  const std::uint64_t bits = random.bits();
  std::int64_t sum = 0;
  for (unsigned part = 0; part < 4; ++part)
    sum += static_cast<std::int64_t>(bits >> (16 * part) & 0xFFFF);
  const std::int64_t scaled = (sum - kMean) * deviation;
  const std::int64_t rounded = (std::abs(scaled) + kWhole / 2) / kWhole;
  return scaled < 0 ? -rounded : rounded;
}

/// Draws image `number` into its bytes.
void draw_image(const ShapesOptions& options, std::int64_t number, std::uint8_t* bytes) {
  const ImageShape& size = options.shape;
  RandomStream random(options.seed, static_cast<std::uint64_t>(number));
  const Shape shape = kShapes[static_cast<std::size_t>(number % options.classes)];
  const Pose pose = draw_pose(size, random);
  const Colours colours = draw_colours(size.channels, random);
  const std::int64_t deviation = saturated_integer(options.noise * kGrey * 65536 + 0.5);
  std::vector<std::int64_t> covered;
  covered.reserve(static_cast<std::size_t>(size.height * size.width));
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x)
      covered.push_back(coverage(shape, pose, x, y));
  }
  constexpr std::int64_t kAll = kSamples * kSamples;
  for (std::size_t c = 0; c < static_cast<std::size_t>(size.channels); ++c) {
    for (const std::int64_t part : covered) {
      const std::int64_t mixed =
          (colours.ground[c] * (kAll - part) + colours.shape[c] * part + kAll / 2) / kAll;
      const std::int64_t noise = deviation > 0 ? draw_noise(deviation, random) : 0;
      *bytes++ = static_cast<std::uint8_t>(std::clamp<std::int64_t>(mixed + noise, 0, kGrey));
    }
  }
}

void check_options(const ShapesOptions& options, std::int64_t first, std::int64_t count) {
  const auto between = [](std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most;
  };
  const ImageShape& size = options.shape;
  internal_check(between(size.channels, 1, kMaxDrawnChannels) &&
                     between(size.height, kMinDrawnSide, kMaxDrawnSide) &&
                     between(size.width, kMinDrawnSide, kMaxDrawnSide),
                 "images of a size that is not drawn");
  internal_check(between(options.classes, 2, kShapeClasses) && options.noise >= 0 &&
                     options.noise <= 1,
                 "classes or noise out of range");
  internal_check(first >= 0 && between(count, 1, kMaxPixelBytes / size.size()),
                 "more images than fit");
}

} // namespace

Dataset draw_shapes(const ShapesOptions& options, std::int64_t first, std::int64_t count,
                    int jobs) {
  check_options(options, first, count);
  Dataset data{options.shape, options.classes, {}, {}};
  const auto size = static_cast<std::size_t>(options.shape.size());
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * size);
  parallel_for(static_cast<std::size_t>(count), jobs, [&](std::size_t i) {
    check_stop();
    draw_image(options, first + static_cast<std::int64_t>(i), pixels.data() + i * size);
  });
  for (std::int64_t i = 0; i < count; ++i)
    data.labels.push_back(static_cast<std::int32_t>((first + i) % options.classes));
  data.pixels = std::move(pixels);
  return data;
}

} // namespace monet
