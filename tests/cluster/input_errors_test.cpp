// Every file in tests/input_errors/cluster must be refused with the first line that stands in its
// .expected file. cluster_* are cluster files, kernels_* kernel tables; CSV files are their points.
#include "monet/base/files.hpp"
#include "monet/cluster/cluster.hpp"
#include "monet/cluster/kernel_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace monet {
namespace {

const std::string kBadFolder = std::string(MONET_SOURCE_DIR) + "/tests/input_errors/cluster/";

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kBadFolder)) {
    if (entry.path().extension() == ".yaml")
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ClusterInputErrors : public testing::TestWithParam<std::string> {};

TEST_P(ClusterInputErrors, NameTheirPlaceAndCause) {
  const std::string path = kBadFolder + GetParam() + ".yaml";
  std::string message = "no error";
  try {
    if (GetParam().starts_with("cluster_")) {
      read_cluster(path);
    } else {
      read_kernel_table(path);
    }
  } catch (const InputError& error) {
    message = error.what();
  }
  message = message.substr(0, message.find('\n'));
  for (std::size_t at = message.find(kBadFolder); at != std::string::npos;
       at = message.find(kBadFolder))
    message.erase(at, kBadFolder.size());
  std::string expected = read_file(kBadFolder + GetParam() + ".expected");
  expected = expected.substr(0, expected.find('\n'));
  EXPECT_EQ(message, expected);
}

INSTANTIATE_TEST_SUITE_P(Files, ClusterInputErrors, testing::ValuesIn(bad_files()),
                         [](const auto& file) { return file.param; });

TEST(BadClusters, HaveManyCases) {
  EXPECT_GE(bad_files().size(), 20U);
}

} // namespace
} // namespace monet
