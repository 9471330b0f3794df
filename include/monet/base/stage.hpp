// Runs a stage: stop requests, invariant checks, and records of the passes within a stage.
// Example:
//   template <class Make>
//   auto make_within(std::chrono::seconds limit, Make make) {
//     StageContext context;
//     context.stop.deadline = StopRequest::Clock::now() + limit;
//     return run_stage(context, "tiling", make); // throws Stopped after the limit
//   }
#pragma once

#include "monet/base/stop.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

/// Settings of a run that all its stages share.
struct StageContext {
  StopRequest stop;    ///< ends stages with Stopped, between and inside their loops
  bool verify = false; ///< check each product's invariants (always on in developer builds)
  int jobs = 1;        ///< number of threads; the results do not depend on it
  std::function<void(std::string_view)> begins; ///< called with each stage's name; may be empty
};

#ifdef MONET_VERIFY_STAGES
inline constexpr bool kVerifyStages = true;
#else
inline constexpr bool kVerifyStages = false;
#endif

/// Runs `make()` as the stage `name` and returns its product. Calls `verify(product)` in developer
/// builds or if the context requests it. Throws Stopped on a stop request.
template <class Make, class Verify>
auto run_stage(StageContext& context, std::string_view name, Make&& make, Verify&& verify) {
  const StopScope scope(&context.stop);
  check_stop();
  if (context.begins)
    context.begins(name);
  auto product = std::forward<Make>(make)();
  if (kVerifyStages || context.verify)
    std::forward<Verify>(verify)(std::as_const(product));
  return product;
}

template <class Make>
auto run_stage(StageContext& context, std::string_view name, Make&& make) {
  return run_stage(context, name, std::forward<Make>(make), [](const auto&) {});
}

/// Size of what passes build.
struct PassSize {
  std::size_t operators = 0;
  std::size_t tensors = 0;
  bool operator==(const PassSize&) const = default;
};

/// A pass that ran, or was skipped because neither the options nor the network require it.
struct PassRecord {
  std::string_view name;
  std::string_view needs; ///< what it reads, separated by commas
  std::string_view makes; ///< what it writes, separated by commas
  bool skipped = false;
  PassSize before;
  PassSize after;
};
/// Function that is called after each pass, in their order.
using PassObserver = std::function<void(const PassRecord&)>;

/// One line: name, contract, and the numbers of operators and tensors before and after the pass.
std::string line_of(const PassRecord& pass);

} // namespace monet
