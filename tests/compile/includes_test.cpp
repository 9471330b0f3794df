// The repository keeps the rules of includes, and each rule is seen to be broken where it is.
#include "compile/include_rules.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

/// A small house in which every rule is kept.
class Includes : public ::testing::Test {
protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    write("include/monet/base/text.hpp", "#include <nlohmann/json_fwd.hpp>\n#include <string>\n");
    write("include/monet/optimise/pareto.hpp", "#include \"monet/base/text.hpp\"\n");
    write("include/monet/optimise/plan.hpp", "#include \"monet/optimise/pareto.hpp\"\n");
    write("include/monet/reference/stream.hpp", "");
    write("src/base/shared/half.hpp", "#include \"monet/base/text.hpp\"\n");
    write("src/base/digits.hpp", "");
    write("src/base/text.cpp", "#include \"monet/base/text.hpp\"\n#include \"base/digits.hpp\"\n");
    write("src/optimise/joint.hpp", "");
    write("src/optimise/joint.cpp", "#include \"optimise/joint.hpp\"\n"
                                    "#include \"optimise/fusion/space.hpp\"\n"
                                    "#include <fmt/format.h>\n");
    write("src/optimise/search/pareto.cpp", "#include \"monet/optimise/pareto.hpp\"\n");
    write("src/optimise/search/sorted.hpp", "");
    write("src/optimise/fusion/space.hpp", "#include \"optimise/search/sorted.hpp\"\n"
                                           "#include \"base/shared/half.hpp\"\n");
    write("src/optimise/fusion/plan.cpp", "#include \"monet/optimise/plan.hpp\"\n");
    write("src/reference/stream/tiles/tiles.cpp", "#include \"monet/reference/stream.hpp\"\n");
    write("src/reference/einsum/rows.hpp", "#include \"monet/optimise/plan.hpp\"\n");
    write("apps/monet/options/chip.hpp", "#include \"monet/base/text.hpp\"\n");
    write("apps/monet/commands/run.cpp", "#include \"options/chip.hpp\"\n");
    write("bench/optimise_bench.cpp", "#include \"optimise/search/sorted.hpp\"\n");
    write("tests/optimise/space_test.cpp", "#include \"optimise/fusion/space.hpp\"\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::app) << text;
  }
  /// What an include more in that file breaks.
  std::vector<std::string> with(const std::string& path, const std::string& include) {
    write(path, "#include " + include + "\n");
    return broken_includes(root_);
  }

  using Lines = std::vector<std::string>;
  fs::path root_;
};

TEST_F(Includes, of_the_repository_keep_the_rules) {
  EXPECT_EQ(broken_includes(MONET_SOURCE_DIR), Lines{});
}

TEST_F(Includes, of_the_small_house_keep_the_rules) {
  EXPECT_EQ(broken_includes(root_), Lines{});
}

TEST_F(Includes, of_a_later_stage) {
  EXPECT_EQ(with("include/monet/base/text.hpp", "\"monet/optimise/pareto.hpp\""),
            Lines{"include/monet/base/text.hpp includes include/monet/optimise/pareto.hpp: a later "
                  "stage"});
  EXPECT_EQ(with("src/base/text.cpp", "\"../optimise/joint.hpp\"").back(),
            "src/base/text.cpp includes src/optimise/joint.hpp: a later stage");
}

TEST_F(Includes, of_a_stage_or_room_without_a_place) {
  write("src/cloud/cloud.cpp", "");
  write("src/optimise/attic/attic.cpp", "");
  EXPECT_EQ(broken_includes(root_),
            (Lines{"src/cloud/cloud.cpp: its stage has no place in the order of stages",
                   "src/optimise/attic/attic.cpp: its room has no place in the order of rooms"}));
}

TEST_F(Includes, of_tests_in_the_library) {
  write("tests/base/random.hpp", "");
  EXPECT_EQ(with("src/base/text.cpp", "\"base/random.hpp\""),
            Lines{"src/base/text.cpp includes tests/base/random.hpp: the library uses include and "
                  "src only"});
}

TEST_F(Includes, between_engines_of_comparison) {
  const std::string rule = ": another engine of comparison";
  EXPECT_EQ(with("src/reference/einsum/rows.hpp", "\"monet/reference/stream.hpp\""),
            Lines{"src/reference/einsum/rows.hpp includes stream/tiles" + rule});
  EXPECT_EQ(with("src/reference/stream/tiles/tiles.cpp", "\"reference/einsum/rows.hpp\"").back(),
            "src/reference/stream/tiles/tiles.cpp includes einsum" + rule);
}

TEST_F(Includes, of_private_headers_of_another_stage) {
  EXPECT_EQ(
      with("src/optimise/joint.cpp", "\"base/digits.hpp\""),
      Lines{"src/optimise/joint.cpp includes src/base/digits.hpp: a private header of another "
            "stage"});
}

TEST_F(Includes, of_private_headers_in_those_for_others) {
  const std::string rule = ": a private header in one for others";
  EXPECT_EQ(with("include/monet/optimise/plan.hpp", "\"optimise/joint.hpp\""),
            Lines{"include/monet/optimise/plan.hpp includes src/optimise/joint.hpp" + rule});
  EXPECT_EQ(with("include/monet/base/text.hpp", "\"base/shared/half.hpp\"").front(),
            "include/monet/base/text.hpp includes src/base/shared/half.hpp" + rule);
}

TEST_F(Includes, of_private_headers_in_the_command_line) {
  EXPECT_EQ(with("apps/monet/commands/run.cpp", "\"base/digits.hpp\""),
            Lines{"apps/monet/commands/run.cpp includes src/base/digits.hpp: a private header of a "
                  "stage"});
}

TEST_F(Includes, of_private_headers_of_several_stages_in_a_benchmark) {
  EXPECT_EQ(with("bench/optimise_bench.cpp", "\"base/digits.hpp\""),
            Lines{"bench/optimise_bench.cpp: uses private headers of several stages"});
}

TEST_F(Includes, of_private_headers_in_tests_of_another_stage) {
  EXPECT_EQ(with("tests/optimise/space_test.cpp", "\"base/digits.hpp\""),
            Lines{"tests/optimise/space_test.cpp includes src/base/digits.hpp: a test uses private "
                  "headers of its own stage only"});
}

TEST_F(Includes, of_a_later_room) {
  EXPECT_EQ(with("src/optimise/search/sorted.hpp", "\"optimise/fusion/space.hpp\""),
            Lines{"src/optimise/search/sorted.hpp includes fusion: a later room"});
}

TEST_F(Includes, of_a_later_room_by_public_headers) {
  EXPECT_EQ(with("src/optimise/search/sorted.hpp", "\"monet/optimise/plan.hpp\""),
            Lines{"src/optimise/search/sorted.hpp includes fusion: a later room"});
  EXPECT_EQ(with("include/monet/optimise/pareto.hpp", "\"monet/optimise/plan.hpp\"").front(),
            "include/monet/optimise/pareto.hpp includes fusion: a later room");
}

TEST_F(Includes, of_the_entrance_in_a_room) {
  EXPECT_EQ(with("src/optimise/fusion/space.hpp", "\"optimise/joint.hpp\""),
            Lines{"src/optimise/fusion/space.hpp includes src/optimise/joint.hpp: a room does not "
                  "use its stage's entrance"});
}

TEST_F(Includes, of_others_in_headers) {
  EXPECT_EQ(with("src/optimise/fusion/space.hpp", "<fmt/format.h>"),
            Lines{"src/optimise/fusion/space.hpp includes fmt/format.h: third-party headers belong "
                  "into .cpp files"});
}

TEST_F(Includes, of_commands_in_options) {
  write("apps/monet/commands/commands.hpp", "");
  EXPECT_EQ(with("apps/monet/options/chip.hpp", "\"commands/commands.hpp\""),
            Lines{"apps/monet/options/chip.hpp includes commands: a later room"});
}

} // namespace
} // namespace monet::test
