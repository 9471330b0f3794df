// Every file in tests/input_errors/hardware must be refused with the first line that stands in its
// .expected file. core_* are core files, chip_* system files.
#include "monet/base/files.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace monet {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = std::string(MONET_SOURCE_DIR) + "/tests/input_errors/hardware/";

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml")
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class HardwareInputErrors : public testing::TestWithParam<std::string> {};

TEST_P(HardwareInputErrors, NameTheirPlaceAndCause) {
  const std::string path = kFolder + GetParam() + ".yaml";
  std::string message = "no error";
  try {
    if (GetParam().starts_with("core_")) {
      read_core(path);
    } else {
      read_chip(path);
    }
  } catch (const InputError& error) {
    message = error.what();
  }
  message = message.substr(0, message.find('\n'));
  if (message.starts_with(kFolder))
    message.erase(0, kFolder.size());
  std::string expected = read_file(kFolder + GetParam() + ".expected");
  expected = expected.substr(0, expected.find('\n'));
  EXPECT_EQ(message, expected);
}

INSTANTIATE_TEST_SUITE_P(Files, HardwareInputErrors, testing::ValuesIn(bad_files()),
                         [](const auto& file) { return file.param; });

TEST(BadHardware, HasManyCases) {
  EXPECT_GE(bad_files().size(), 50U);
}

TEST(BadHardware, ReportsAllProblemsInOneRun) {
  try {
    read_core(kFolder + "core_three_problems.yaml");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(),
              4U); // the key that is unknown is also the one that is missing
  }
}

} // namespace
} // namespace monet
