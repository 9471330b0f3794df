#include "base/shared/amounts.hpp"
#include "base/shared/checked.hpp"
#include "base/shared/fnv1a.hpp"
#include "base/shared/sha512.hpp"
#include "base/shared/text.hpp"
#include "base/shared/union_volume.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>

namespace monet {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(Checked, ThrowsOnBothSidesOfTheEdge) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_THROW(checked_add(kMax, 1), InputError);
  // 3037000499^2 is the largest square below 2^63.
  EXPECT_EQ(checked_multiply(3037000499, 3037000499), 9223372030926249001);
  EXPECT_THROW(checked_multiply(3037000500, 3037000500), InputError);
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_EQ(checked_product(std::array<std::int64_t, 3>{2, 3, 5}), 30);
}

TEST(Errors, LocationsReadAsFileLineColumn) {
  EXPECT_EQ((SourceLoc{"a.yaml", 3, 5, {}}).to_string(), "a.yaml:3:5");
  EXPECT_EQ((SourceLoc{"a.onnx", 0, 0, "node 'x'"}).to_string(), "a.onnx [node 'x']");
  const InputError error({"a.yaml", 1, 2, {}}, "wrong", "try right");
  EXPECT_STREQ(error.what(), "a.yaml:1:2: wrong (try right)");
}

TEST(Errors, AListThrowsAllItHolds) {
  ProblemList problems;
  EXPECT_NO_THROW(problems.throw_if_any());
  problems.add({"a", 1, 1, {}}, "one");
  problems.add({"a", 2, 1, {}}, "two");
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "a:1:1: one\na:2:1: two");
    EXPECT_EQ(error.problems().size(), 2U);
  }
}

TEST(Text, HintsAtTheNearestName) {
  const std::vector<std::string> names{"size", "operands", "ports"};
  EXPECT_EQ(nearest_name_hint("sise", names), "did you mean 'size'?");
  EXPECT_EQ(nearest_name_hint("operand", names), "did you mean 'operands'?");
  EXPECT_EQ(nearest_name_hint("frequency", names), "");
}

TEST(Text, JsonDepthCountsBracketsOutsideOfQuotes) {
  EXPECT_EQ(json_depth(""), 0);
  EXPECT_EQ(json_depth("[{}, {\"a\": [1]}]"), 3);
  EXPECT_EQ(json_depth("[\"[[[\", \"\\\"[[\"]"), 1);
  EXPECT_EQ(json_depth("]]"), 0);
  EXPECT_EQ(json_depth("[[["), 3);
}

TEST(Checked, FloatingNumbersBecomeTheNearestIntegerThereIs) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(saturated_integer(-2.9), -2);
  EXPECT_EQ(saturated_integer(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(saturated_integer(kInfinite), kMax);
  EXPECT_EQ(saturated_integer(-kInfinite), kMin);
  EXPECT_EQ(saturated_integer(0x1p63), kMax);
  EXPECT_EQ(saturated_integer(-0x1p63), kMin);
  EXPECT_EQ(saturated_integer(0x1.fffffffffffffp62), 0x7ffffffffffffc00); // both sides of the edge
}

TEST(Text, GlobsMatchWholeNames) {
  EXPECT_TRUE(glob_match("layer*.weight", "layer1.0.weight"));
  EXPECT_FALSE(glob_match("layer*.weight", "layer1.0.weights"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a?c", "abc"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
  EXPECT_FALSE(glob_match(std::string(50, '*') + "b", std::string(5000, 'a')));
}

TEST(Text, NumbersForPeople) {
  EXPECT_EQ(group_digits(1234567), "1,234,567");
  EXPECT_EQ(group_digits(-123), "-123");
  EXPECT_EQ(group_digits(-1234), "-1,234");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(18140365), "17.3 MiB");
}

TEST(Files, WritesWholeFilesAndReadsThemBack) {
  const auto path = std::filesystem::temp_directory_path() / "monet_base_test.txt";
  write_file_atomically(path.string(), "one");
  write_file_atomically(path.string(), "two");
  EXPECT_EQ(read_file(path.string()), "two");
  EXPECT_THROW(read_file(path.string(), 2), InputError);
  std::filesystem::remove(path);
  EXPECT_THROW(read_file(path.string()), InputError);
}

TEST(Files, WriteThroughLinksAndIntoDevices) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "monet_files_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  write_file_atomically((folder / "file").string(), "one");
  std::filesystem::create_symlink("file", folder / "link");
  write_file_atomically((folder / "link").string(), "two");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file((folder / "file").string()), "two");

  // A link to the device, so that a fault replaces the link and not the machine's device.
  std::filesystem::create_symlink("/dev/full", folder / "full");
  EXPECT_THROW(write_file_atomically((folder / "full").string(), "three"), OutputError);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "full"));
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file_atomically(pipe, "four");
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 4);
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));

  EXPECT_THROW(write_file_atomically(folder.string(), "five"), OutputError);
  std::filesystem::remove_all(folder);
}

/// What `act` throws says; "" without.
template <class Error>
std::string said_by(const std::function<void()>& act) {
  try {
    act();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

class Places : public ::testing::Test {
protected:
  Places()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("monet_places_test_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    write_file_atomically(at("file"), "text");
  }
  ~Places() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    const auto all = std::filesystem::recursive_directory_iterator(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  std::filesystem::path folder_;
};

TEST_F(Places, OnlyFilesAreRead) {
  const auto refusal = [](const std::string& path) {
    return said_by<InputError>([&] { read_file(path); });
  };
  EXPECT_EQ(refusal(folder_.string()), folder_.string() + ": is a folder, not a file");
  EXPECT_EQ(refusal("/dev/zero"), "/dev/zero: is a device, not a file");
  std::filesystem::create_symlink("/dev/zero", at("link"));
  EXPECT_EQ(refusal(at("link")), at("link") + ": is a device, not a file");
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(at("pipe")), at("pipe") + ": is a pipe, not a file"); // does not wait
  EXPECT_EQ(refusal(at("none")), at("none") + ": cannot be opened: No such file or directory");
  EXPECT_NE(read_file("/proc/self/status"), ""); // of size 0, as the file system has it
  EXPECT_EQ(said_by<InputError>([&] { read_file("/proc/self/status", 3); }),
            "/proc/self/status: is larger than 3 bytes");
  EXPECT_EQ(read_file(at("file"), 4), "text");
  std::filesystem::resize_file(at("file"), std::uintmax_t{1} << 32); // takes no space
  EXPECT_EQ(refusal(at("file")), at("file") + ": is larger than 2.00 GiB (2,147,483,648 bytes)");
  EXPECT_EQ(read_beginning(at("file"), 6), std::string("text\0\0", 6));
}

TEST_F(Places, AreTriedWithoutATrace) {
  const auto refusal = [](const std::string& path) {
    return said_by<OutputError>([&] { try_to_write(path); });
  };
  EXPECT_EQ(refusal(at("new")), "");
  EXPECT_EQ(refusal(at("file")), "");
  EXPECT_EQ(refusal("/dev/null"), "");
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(read_file(at("file")), "text");
  EXPECT_EQ(refusal(folder_.string()), folder_.string() + ": is a folder, not a file");
  EXPECT_EQ(refusal(at("none/new")),
            at("none/new") + ": cannot be created: No such file or directory");
  EXPECT_EQ(refusal(at("file/new")), at("file/new") + ": cannot be created: Not a directory");
  EXPECT_NE(refusal("/proc/new"), "");
}

TEST_F(Places, AFileAsideIsNeverALinkOfSomebodyElses) {
  const std::string aside = at("out") + "." + std::to_string(::getpid()) + ".tmp";
  std::filesystem::create_symlink("file", aside);
  write_file_atomically(at("out"), "mine");
  EXPECT_EQ(read_file(at("out")), "mine");
  EXPECT_EQ(read_file(at("file")), "text");
}

TEST_F(Places, AHeldFolderIsForOne) {
  {
    const LockedFolder one(at("a/b"));
    EXPECT_EQ(said_by<OutputError>([&] { const LockedFolder two(at("a/b")); }),
              at("a/b") + ": is in use by another run: " + read_file(at("a/b/.monet.lock")));
    const LockedFolder other(at("a"));
  }
  EXPECT_EQ(files(), 1U); // nothing was written, so nothing stays
  {
    const LockedFolder again(at("a/b"));
    write_file_atomically(at("a/b/result"), "text");
  }
  EXPECT_EQ(files(), 4U);
  EXPECT_NE(said_by<OutputError>([&] { const LockedFolder held(at("file/b")); }), "");
  EXPECT_NE(said_by<OutputError>([&] { const LockedFolder held("/proc/b"); }), "");
}

TEST_F(Places, AHeldFolderIsFreeAfterAKill) {
  std::array<int, 2> said{};
  ASSERT_EQ(::pipe(said.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const LockedFolder held(at("a"));
    if (::write(said[1], "y", 1) == 1)
      ::pause();
    ::_exit(1);
  }
  char got = 0;
  ASSERT_EQ(::read(said[0], &got, 1), 1);
  const std::string refused = said_by<OutputError>([&] { const LockedFolder held(at("a")); });
  EXPECT_NE(refused.find("is in use by another run: process " + std::to_string(child)),
            std::string::npos)
      << refused;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const std::string unfinished = fmt::format("{}.{}.tmp", at("a/result.json"), child);
  write_file_atomically(unfinished, "half a resu");
  write_file_atomically(at("a/notes.1.tmp"), "somebody else's");
  const LockedFolder held(at("a"));
  EXPECT_FALSE(is_file(unfinished));
  EXPECT_TRUE(is_file(at("a/notes.1.tmp")));
  ::close(said[0]);
  ::close(said[1]);
}

TEST(Files, PathsAreSeenFromTheFileThatNamesThem) {
  EXPECT_EQ(resolve_beside("examples/a.yaml", "../data/b.onnx"), "data/b.onnx");
  EXPECT_EQ(resolve_beside("examples/a.yaml", "/b.onnx"), "/b.onnx");
}

TEST(Fnv1a, IsThePublishedHash) {
  // The published test vectors of 64-bit FNV-1a for "" and "a".
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
}

TEST(Sha512, IsThatOfFips180) {
  // FIPS 180-4, example "abc", and the empty message.
  EXPECT_EQ(sha512("abc")[0], 0xddaf35a193617abaU);
  EXPECT_EQ(sha512("abc")[7], 0x2a9ac94fa54ca49fU);
  EXPECT_EQ(sha512("")[0], 0xcf83e1357eefb8bdU);
  // Lengths on both sides of every edge of a block: python3 -c "import hashlib; h = lambda b:
  // hashlib.sha512(b).hexdigest(); print(h(''.join(h(b'a' * n) for n in range(300)).encode()))"
  std::string all;
  for (std::size_t n = 0; n < 300; ++n)
    all += sha512_hex(std::string(n, 'a'));
  EXPECT_EQ(sha512_hex(all), "b663acf6cfcf582ed68947a24d47c469532263c00031a34e87e2223382f02714"
                             "4ed388ee5866ddf3bce3b2d1075319fa260cf41004d961ba45be3dcfab0f5551");
}

RC_GTEST_PROP(Text, EveryNameMatchesItselfAndAStar, (const std::string& name)) {
  RC_PRE(name.find_first_of("*?") == std::string::npos);
  RC_ASSERT(glob_match(name, name));
  RC_ASSERT(glob_match("*" + name, name));
  RC_ASSERT(glob_match(name + "*", name + "x"));
}

TEST(UnionVolume, CountsOverlapsOnce) {
  const std::vector<Box> boxes{{{0, 4}, {0, 4}}, {{2, 6}, {2, 6}}, {{0, 4}, {0, 4}}};
  EXPECT_EQ(union_volume(boxes), 16 + 16 - 4);
  EXPECT_EQ(union_volume({}), 0);
  const std::vector<Box> scalar{{}, {}};
  EXPECT_EQ(union_volume(scalar), 1);
}

TEST(Amounts, HaveUnitsThatFit) {
  EXPECT_EQ(both_bytes(50), "50 bytes");
  EXPECT_EQ(both_bytes(27442126637864), "25.0 TiB (27,442,126,637,864 bytes)");
  EXPECT_EQ(human_duration(108.39, 3), "108 s");
  EXPECT_EQ(human_duration(0.003363, 4), "3.363 ms");
  EXPECT_EQ(human_duration(9e-8, 4), "90 ns");
  EXPECT_EQ(human_duration(2e-6, 4), "2 us");
  EXPECT_EQ(human_duration(864000 * 10.0, 3), "100 days");
  EXPECT_EQ(human_duration(36000, 3), "10 h");
  EXPECT_EQ(human_duration(0, 3), "0 ms");
}

} // namespace
} // namespace monet
