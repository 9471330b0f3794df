// Substitutes for the reference engines' commands in a build without them (MONET_REFERENCE=OFF);
// they throw UsageError.
#include "commands/optimise.hpp"
#include "commands/schedule.hpp"

#include <fmt/core.h>

namespace monet::cli {

namespace {

[[noreturn]] void refuse(const char* model) {
  throw UsageError(
      fmt::format("this build lacks --model {}: configure it with -DMONET_REFERENCE=ON", model));
}

} // namespace

int run_stream(const ScheduleArguments&, Session&) {
  refuse("stream-coala");
}
int optimise_einsum(const OptimiseArguments&, const FusionArguments&, Session&) {
  refuse("einsum");
}

} // namespace monet::cli
