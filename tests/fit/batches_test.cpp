#include "monet/base/errors.hpp"
#include "monet/fit/dataset.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace monet {
namespace {

using Images = std::vector<std::int64_t>;

Images counted(std::int64_t count) {
  Images images(static_cast<std::size_t>(count));
  std::iota(images.begin(), images.end(), std::int64_t{0});
  return images;
}

RC_GTEST_PROP(EpochOrder, HasEveryImageOnce, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(0, 300);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Images order = epoch_order(count, seed, *rc::gen::inRange<std::int64_t>(0, 50));
  std::sort(order.begin(), order.end());
  RC_ASSERT(order == counted(count));
}

// Computed by hand with another program: Fisher-Yates from the end, with random_bits() of the
// stream that the header names.
TEST(EpochOrder, IsTheSameEverywhere) {
  EXPECT_EQ(epoch_order(10, 1, 0), (Images{8, 0, 2, 9, 4, 1, 6, 7, 3, 5}));
  EXPECT_EQ(epoch_order(10, 1, 1), (Images{9, 0, 5, 8, 7, 1, 3, 2, 4, 6}));
  EXPECT_EQ(epoch_order(1, 5, 5), (Images{0}));
  EXPECT_TRUE(epoch_order(0, 5, 5).empty());
}

TEST(EpochOrder, DiffersBySeedAndEpoch) {
  EXPECT_NE(epoch_order(100, 1, 0), epoch_order(100, 1, 1));
  EXPECT_NE(epoch_order(100, 1, 0), epoch_order(100, 2, 0));
  EXPECT_EQ(epoch_order(100, 2, 7), epoch_order(100, 2, 7));
}

// Each of the 6 orders of 3 images: 6,000 epochs are 1,000 of each, with a deviation of 29.
TEST(EpochOrder, HasNoFavourites) {
  std::map<Images, int> times;
  for (std::int64_t epoch = 0; epoch < 6000; ++epoch)
    ++times[epoch_order(3, 42, epoch)];
  ASSERT_EQ(times.size(), 6U);
  for (const auto& [order, count] : times)
    EXPECT_NEAR(count, 1000, 5 * 29);
}

TEST(TrainingBatches, DropWhatIsLeftOver) {
  const std::vector<ImageBatch> batches = training_batches(Images{4, 2, 0, 6, 1, 5, 3}, 3);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].images, (Images{4, 2, 0}));
  EXPECT_EQ(batches[1].images, (Images{6, 1, 5}));
  EXPECT_EQ(batches[1].counted, 3);
  EXPECT_EQ(training_batches(counted(6), 3).size(), 2U);
  EXPECT_EQ(training_batches(counted(6), 6).size(), 1U);
}

TEST(TrainingBatches, SayThatThereAreNone) {
  try {
    training_batches(counted(6), 7);
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(), "a batch of 7 is more than the 6 images for training");
  }
  EXPECT_THROW(training_batches(counted(6), 0), InternalError);
}

TEST(TestBatches, FillTheLastWithTheFirstImages) {
  const std::vector<ImageBatch> batches = test_batches(7, 3);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[1].images, (Images{3, 4, 5}));
  EXPECT_EQ(batches[1].counted, 3);
  EXPECT_EQ(batches[2].images, (Images{6, 0, 1}));
  EXPECT_EQ(batches[2].counted, 1);
  EXPECT_EQ(test_batches(6, 3).size(), 2U);
  const std::vector<ImageBatch> few = test_batches(2, 5);
  ASSERT_EQ(few.size(), 1U);
  EXPECT_EQ(few[0].images, (Images{0, 1, 0, 1, 0}));
  EXPECT_EQ(few[0].counted, 2);
}

RC_GTEST_PROP(TestBatches, CountEveryImageOnce, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(1, 200);
  const auto size = *rc::gen::inRange<std::int64_t>(1, 70);
  Images seen;
  for (const ImageBatch& batch : test_batches(count, size)) {
    RC_ASSERT(batch.images.size() == static_cast<std::size_t>(size));
    seen.insert(seen.end(), batch.images.begin(), batch.images.begin() + batch.counted);
    for (const std::int64_t image : batch.images)
      RC_ASSERT(image >= 0 && image < count);
  }
  RC_ASSERT(seen == counted(count));
}

} // namespace
} // namespace monet
