#include "monet/base/errors.hpp"
#include "monet/cluster/duration.hpp"

#include <gtest/gtest.h>

namespace monet {

TEST(Duration, RoundsUpToWholeNanoseconds) {
  EXPECT_EQ(duration_of(0, 25), 0);
  EXPECT_EQ(duration_of(1, 25), 1);
  EXPECT_EQ(duration_of(25e9, 25), 1'000'000'000);
  EXPECT_EQ(whole_nanoseconds(1.25), 2);
}

TEST(Duration, RefusesWhatIsNone) {
  EXPECT_THROW(duration_of(1, 0), InternalError);
  EXPECT_THROW(whole_nanoseconds(-1), InternalError);
  EXPECT_THROW(whole_nanoseconds(1e30), InternalError);
}

} // namespace monet
