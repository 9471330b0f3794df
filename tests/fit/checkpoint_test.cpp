// Folders of checkpoints: which is the newest, which are kept, and what is refused.
#include "fit/image_files.hpp"

#include "monet/base/files.hpp"
#include "monet/fit/checkpoint.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

class Checkpoints : public ::testing::Test {
protected:
  Checkpoints() { fs::create_directories(path_); }
  ~Checkpoints() override { fs::remove_all(path_); }

  static RunState state(std::size_t steps) {
    RunState made;
    made.updates = static_cast<std::int64_t>(steps);
    made.advances = made.updates + 1;
    for (std::size_t i = 0; i < steps; ++i)
      made.history.steps.push_back({0.1,
                                    1.0 / static_cast<double>(i + 1),
                                    {},
                                    2.0,
                                    i % 2 == 0,
                                    i == 1 ? std::optional(0.25) : std::nullopt});
    made.history.steps.back().loss = std::numeric_limits<double>::infinity();
    made.history.tests.push_back({1, {}, 0.5});
    made.history.non_finite.push_back({2, OpId(3), {}});
    made.tensors.push_back({"/a/b.w", {2}, {0.1, -std::nan("")}});
    made.tensors.push_back({"%2F", {}, {-0.0}});
    return made;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(path_))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string refusal() const {
    std::string said = error_of([&] { folder_.newest(); });
    return said.substr(said.rfind("step_"));
  }

  fs::path path_ =
      fs::path(::testing::TempDir()) /
      (std::string("ckpt_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
  CheckpointFolder folder_{path_.string(), "abc"};
};

TEST_F(Checkpoints, ComeBackAsTheyWere) {
  EXPECT_FALSE(folder_.newest());
  folder_.write(state(3), 1);
  const auto found = folder_.newest();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, (path_ / "step_00000003").string());
  const RunState& back = found->state;
  EXPECT_EQ(back.updates, 3);
  EXPECT_EQ(back.advances, 4);
  EXPECT_FALSE(back.ended);
  ASSERT_EQ(back.history.steps.size(), 3U);
  EXPECT_EQ(back.history.steps[1].loss, 0.5);
  EXPECT_TRUE(std::isinf(back.history.steps[2].loss));
  EXPECT_FALSE(back.history.steps[0].accuracy);
  EXPECT_EQ(back.history.steps[0].scale, 2.0);
  EXPECT_TRUE(back.history.steps[2].skipped);
  EXPECT_EQ(back.history.steps[1].flushed, 0.25);
  EXPECT_FALSE(back.history.steps[2].flushed);
  EXPECT_EQ(back.history.tests.at(0).step, 1);
  EXPECT_FALSE(back.history.tests.at(0).loss);
  EXPECT_EQ(back.history.non_finite.at(0).op, OpId(3));
  EXPECT_FALSE(back.history.non_finite.at(0).tensor);
  ASSERT_EQ(back.tensors.size(), 2U);
  for (const SavedTensor& tensor : back.tensors) {
    if (tensor.name == "%2F") {
      EXPECT_TRUE(std::signbit(tensor.numbers.at(0)));
      EXPECT_TRUE(tensor.shape.empty());
    } else {
      EXPECT_EQ(tensor.name, "/a/b.w");
      EXPECT_EQ(tensor.numbers.at(0), 0.1);
      EXPECT_TRUE(std::isnan(tensor.numbers.at(1)));
    }
  }
}

TEST_F(Checkpoints, OldOnesGo) {
  for (std::size_t steps = 1; steps <= 5; ++steps)
    folder_.write(state(steps), 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"step_00000004", "step_00000005"}));
  folder_.write(state(5), 2); // takes the place of the one before
  EXPECT_EQ(names(), (std::vector<std::string>{"step_00000004", "step_00000005"}));
  folder_.clear();
  EXPECT_FALSE(fs::exists(path_));
}

// Whatever a process that was killed has left.
TEST_F(Checkpoints, HalvesDoNotCount) {
  folder_.write(state(4), 3);
  fs::create_directories(path_ / "step_00000009.tmp/tensors");
  write_file_atomically((path_ / "step_00000009.tmp/checkpoint.yaml").string(), "version: 2\n");
  EXPECT_EQ(folder_.newest()->state.updates, 4);
  fs::rename(path_ / "step_00000004", path_ / "step_00000004.old"); // between two renames
  EXPECT_EQ(folder_.newest()->state.updates, 4);
  folder_.write(state(4), 3);
  EXPECT_EQ(folder_.newest()->path, (path_ / "step_00000004").string());
  EXPECT_FALSE(fs::exists(path_ / "step_00000004.old"));
  folder_.remove_unfinished();
  EXPECT_EQ(names(), std::vector<std::string>{"step_00000004"});
}

TEST_F(Checkpoints, OfOtherRecipesAreRefused) {
  CheckpointFolder(path_.string(), "other").write(state(2), 1);
  EXPECT_EQ(
      refusal(),
      "step_00000002/checkpoint.yaml:1:1: was made by another experiment or network "
      "than the one given (leave out --resume to start again, or name another folder with -o)");
}

TEST_F(Checkpoints, ThatAreNoneAreRefused) {
  folder_.write(state(2), 1);
  const std::string inside = (path_ / "step_00000002/").string();
  write_file_atomically(inside + "checkpoint.yaml",
                        "version: 3\nexperiment: abc\nupdates: 1\nadvances: 1\n");
  EXPECT_EQ(
      refusal(),
      "step_00000002/checkpoint.yaml:1:1: is not a checkpoint that this version can continue");
  folder_.write(state(2), 1);
  fs::copy_file(inside + "tests.npy", inside + "steps.npy", fs::copy_options::overwrite_existing);
  EXPECT_EQ(refusal(), "step_00000002/steps.npy: is not a table of 6 columns");
  folder_.write(state(2), 1);
  fs::remove(inside + "steps.npy");
  EXPECT_EQ(refusal(), "step_00000002/steps.npy: cannot be opened: No such file or directory");
  folder_.write(state(3), 2);
  fs::rename(path_ / "step_00000003", path_ / "step_00000007");
  EXPECT_EQ(refusal(), "step_00000007: has a history of 3 steps");
}

} // namespace
} // namespace monet::test
