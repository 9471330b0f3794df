// monet optimise fusion --model einsum.
#include "optimise.hpp"

namespace monet::cli {

int optimise_einsum(const OptimiseArguments&, const FusionArguments&, Session&) {
  throw UsageError("monet optimise fusion --model einsum is not available yet");
}

} // namespace monet::cli
