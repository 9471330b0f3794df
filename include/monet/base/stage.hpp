// The one door through which every stage runs: stop requests, timing and invariant checks in one
// place.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

struct StageTiming {
  std::string name;
  double seconds = 0;
};

/// The user asked to stop (Ctrl-C). What was finished before stays valid.
class Stopped : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// What a run carries through its stages. `stop` may be null; `timings` grows by one entry a stage.
struct StageContext {
  const std::atomic<bool>* stop = nullptr;
  bool verify = false; ///< check each product's invariants (always on in developer builds)
  int jobs = 1;        ///< threads; results are the same for any number
  std::function<void(std::string_view)> begins; ///< told every stage's name; may be empty
  std::vector<StageTiming> timings;

  void check_stop(std::string_view stage) const;
};

#ifdef MONET_VERIFY_STAGES
inline constexpr bool kVerifyStages = true;
#else
inline constexpr bool kVerifyStages = false;
#endif

/// Runs `make()`, times it as `name`, and then `verify(product)` when asked to.
template <class Make, class Verify>
auto run_stage(StageContext& context, std::string_view name, Make&& make, Verify&& verify) {
  context.check_stop(name);
  if (context.begins)
    context.begins(name);
  const auto begin = std::chrono::steady_clock::now();
  auto product = std::forward<Make>(make)();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  context.timings.push_back({std::string(name), took.count()});
  if (kVerifyStages || context.verify)
    std::forward<Verify>(verify)(std::as_const(product));
  return product;
}

template <class Make>
auto run_stage(StageContext& context, std::string_view name, Make&& make) {
  return run_stage(context, name, std::forward<Make>(make), [](const auto&) {});
}

} // namespace monet
