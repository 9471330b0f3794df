#include "cli/run_monet.hpp"

#include <gtest/gtest.h>

#include <string_view>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  monet::test::update_golden(argc > 1 && std::string_view(argv[1]) == "--update-golden");
  return RUN_ALL_TESTS();
}
