#include "monet/base/errors.hpp"
#include "monet/cluster/cluster.hpp"

#include <gtest/gtest.h>

namespace monet {

TEST(Duration, RoundsUpToWholeNanoseconds) {
  EXPECT_EQ(whole_nanoseconds(0), 0);
  EXPECT_EQ(whole_nanoseconds(1.25), 2);
}

TEST(Duration, RefusesWhatIsNone) {
  EXPECT_THROW(whole_nanoseconds(-1), InternalError);
  EXPECT_THROW(whole_nanoseconds(1e30), InternalError);
}

} // namespace monet
