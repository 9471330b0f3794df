// Output into pipes: it reaches a slow reader whole, and a stop request ends the wait for one.
#include "monet/base/files.hpp"
#include "monet/base/stop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

namespace monet {
namespace MONET_TEST_FILE {

class Pipes : public ::testing::Test {
protected:
  Pipes() {
    ::unlink(path_.c_str());
    if (::mkfifo(path_.c_str(), 0600) != 0)
      ADD_FAILURE() << "no pipe";
  }
  ~Pipes() override { ::unlink(path_.c_str()); }

  const std::string path_ = std::filesystem::path(::testing::TempDir()) /
                            (std::string("monet_pipe_") +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string text_ = std::string(std::size_t{1} << 20, 'x') + "end";
};

TEST_F(Pipes, ASlowReaderReceivesEverything) {
  std::string received;
  std::jthread reader([&] {
    const int file = ::open(path_.c_str(), O_RDONLY);
    std::array<char, 10'000> block{};
    for (ssize_t got = 1; got > 0;) {
      got = ::read(file, block.data(), block.size());
      received.append(block.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    ::close(file);
  });
  write_file_atomically(path_, text_);
  reader.join();
  EXPECT_EQ(received, text_);
}

TEST_F(Pipes, AStopRequestEndsTheWaitForAReader) {
  std::atomic<bool> flag{false};
  const StopScope scope({&flag});
  const std::jthread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    flag = true;
  });
  EXPECT_THROW(write_file_atomically(path_, text_), Stopped);
}

TEST_F(Pipes, AStopRequestEndsTheWaitForAReaderThatDoesNotRead) {
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  std::atomic<bool> flag{true};
  {
    const StopScope scope({&flag});
    EXPECT_NO_THROW(write_file_atomically(path_, "fits into the pipe"));
    EXPECT_THROW(write_file_atomically(path_, text_), Stopped);
  }
  ::close(reader);
}

} // namespace MONET_TEST_FILE
} // namespace monet
