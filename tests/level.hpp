// How much the tests check. ./test.sh runs them at `fast`, --full at `full`, --slow at `slow`.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace monet::test {

enum class Level { fast, full, slow };

/// The environment's MONET_TEST_LEVEL; fast where it is not set.
inline Level level() {
  const char* name = std::getenv("MONET_TEST_LEVEL");
  const std::string_view text = name == nullptr ? "fast" : name;
  return text == "slow" ? Level::slow : text == "full" ? Level::full : Level::fast;
}

/// The number of cases for this run's level.
inline int cases(int fast, int full, int slow) {
  return level() == Level::slow ? slow : level() == Level::full ? full : fast;
}

} // namespace monet::test

/// Skips the running test below a level.
#define MONET_FROM_LEVEL(name)                                                                     \
  if (monet::test::level() < monet::test::Level::name)                                             \
  GTEST_SKIP() << "runs from level " #name
