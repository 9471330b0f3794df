// monet optimise checkpointing --log.
#include "optimise.hpp"

namespace monet::cli {

int optimise_log(const OptimiseArguments&, const CheckpointingArguments&, Session&) {
  throw UsageError("monet optimise checkpointing --log is not available yet");
}

} // namespace monet::cli
