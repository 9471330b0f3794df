// What the processes of a job tell each other, as bytes. All run the same program on machines of
// the same kind.
#pragma once

#include "monet/explore/strategy.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// An exception on its way to another process: one of the three families, or text.
struct RemoteFailure {
  std::uint64_t position = 0; ///< of the design in what rank 0 runs
  std::string error;          ///< see pack_error()
};

/// From rank 0: designs to evaluate, or none but news of trainings.
struct WorkMessage {
  std::uint64_t position = 0; ///< of the first
  std::vector<DesignId> ids;
  SharedFronts fronts;                   ///< to race against; may be null
  std::vector<TrainingRecord> trainings; ///< that the process has not heard of
};

/// To rank 0, once at the beginning.
struct HelloMessage {
  std::string identity;
  std::uint64_t threads = 0;
  std::optional<RemoteFailure> failure;
};

/// To rank 0.
struct ResultsMessage {
  std::vector<DesignResult> results;
  std::uint64_t received = 0; ///< designs since the beginning
  bool idle = false;          ///< none of them is left
  double evaluation_seconds = 0;
  double communication_seconds = 0;
  std::uint64_t messages = 0;            ///< that this process sent
  std::vector<TrainingRecord> trainings; ///< that it made since the last one
  std::optional<RemoteFailure> failure;
};

/// Of the messages above.
template <class Message>
std::string pack(const Message& message);
/// InternalError for bytes that are no such message.
template <class Message>
Message unpack(std::string_view bytes);

std::string pack_error(const std::exception_ptr& error);
/// Throws what was packed, with the process's number where it is our bug.
[[noreturn]] void throw_error(std::string_view bytes, int rank);

} // namespace monet
