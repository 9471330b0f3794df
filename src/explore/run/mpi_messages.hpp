// Messages between the processes of an MPI job, as bytes. All processes run the same program on
// machines with the same data layout.
#pragma once

#include "monet/explore/strategy.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// An exception sent to another process: its family and its problems or text.
struct RemoteFailure {
  std::uint64_t position = 0; ///< of the design in rank 0's current run
  std::string error;          ///< see pack_error()
};

/// A message from rank 0 to another rank: designs to evaluate, new trainings, or both.
struct WorkMessage {
  std::uint64_t position = 0; ///< of the first design
  std::vector<DesignId> ids;
  SharedFronts fronts;                   ///< to race against; may be null
  std::vector<TrainingRecord> trainings; ///< new to the receiver
};

/// The first message of each process to rank 0, sent once.
struct HelloMessage {
  std::string identity;
  std::uint64_t threads = 0;
  std::optional<RemoteFailure> failure;
};

/// Results of a process, sent to rank 0.
struct ResultsMessage {
  std::vector<DesignResult> results;
  std::uint64_t received = 0; ///< designs since the start
  bool idle = false;          ///< all of them are finished
  double evaluation_seconds = 0;
  double communication_seconds = 0;
  std::uint64_t messages = 0;            ///< sent by this process
  std::vector<TrainingRecord> trainings; ///< made since the last message
  std::optional<RemoteFailure> failure;
};

/// The bytes of a WorkMessage, HelloMessage or ResultsMessage.
template <class Message>
std::string pack(const Message& message);
/// The message packed in `bytes`. Throws InternalError if they hold no such message.
template <class Message>
Message unpack(std::string_view bytes);

std::string pack_error(const std::exception_ptr& error);
/// Throws the packed exception again. The text of an internal error names the process's rank.
[[noreturn]] void throw_error(std::string_view bytes, int rank);

} // namespace monet
