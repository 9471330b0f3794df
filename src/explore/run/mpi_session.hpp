// Messages between the processes of an MPI job. Sends do not block, so there is no deadlock, and
// waiting sleeps because Open MPI's blocking calls would occupy a whole core.
#pragma once

#include "monet/explore/mpi_runner.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>

namespace monet {

enum class MpiTag : int { kHello = 1, kWork, kDrop, kEnd, kResults, kBye };

struct MpiMessage {
  int rank = 0; ///< of the sender
  MpiTag tag{};
  std::string bytes;
};

class MpiConnection final : public MpiSession {
public:
  /// Pause between polls for messages. A poll costs microseconds, and the designs queued in a
  /// process last longer than the pause.
  static constexpr std::chrono::milliseconds kNap{8};

  MpiConnection();
  ~MpiConnection() override;

  int rank() const override { return rank_; }
  int processes() const override { return processes_; }
  double seconds() const { return seconds_; }          ///< in MPI functions
  std::uint64_t messages() const { return messages_; } ///< sent

  void send(int to, MpiTag tag, std::string bytes);
  /// The next message; empty if none has arrived.
  std::optional<MpiMessage> poll();
  /// The next message, for which it waits.
  MpiMessage wait();
  /// Ends all other processes and passes their last messages to `take`. Only rank 0 calls this;
  /// later calls have no effect.
  void end_all(const std::function<void(const MpiMessage&)>& take);

private:
  struct PendingSend;

  void forget_arrived();

  int rank_ = 0;
  int processes_ = 1;
  bool is_over_ = false;
  std::list<PendingSend> sent_;
  double seconds_ = 0;
  std::uint64_t messages_ = 0;
};

} // namespace monet
