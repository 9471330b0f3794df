#include "input_gradient.hpp"

#include "monet/core_cost/core_cost.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <unordered_map>

namespace monet {

struct CoreCostCache::Impl {
  struct Entry {
    std::once_flag once;
    CoreCost cost;
    std::exception_ptr failure;
  };

  const CoreCost& get(const CoreProblem& problem, const Core& core, const CoreCostOptions& options);

  mutable std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries;
  std::atomic<std::size_t> asked{0};
};

const CoreCost& CoreCostCache::Impl::get(const CoreProblem& problem, const Core& core,
                                         const CoreCostOptions& options) {
  std::string key = signature(problem, core, options);
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex);
    auto& slot = entries[std::move(key)];
    if (!slot)
      slot = std::make_unique<Entry>();
    entry = slot.get();
  }
  // Solved outside the lock; others who ask for the same problem wait here. A failure is kept and
  // thrown again. A problem that scatters asks for its forms, which ask for nothing: no two wait
  // for each other.
  std::call_once(entry->once, [&] {
    try {
      entry->cost = core_cost_detail::core_cost_with(
          problem, core, options,
          [this](const CoreProblem& part, const Core& on, const CoreCostOptions& as_is) {
            return get(part, on, as_is);
          });
    } catch (...) {
      entry->failure = std::current_exception();
    }
  });
  if (entry->failure)
    std::rethrow_exception(entry->failure);
  return entry->cost;
}

CoreCostCache::CoreCostCache() : impl_(std::make_unique<Impl>()) {}
CoreCostCache::~CoreCostCache() = default;

const CoreCost& CoreCostCache::get(const CoreProblem& problem, const Core& core,
                                   const CoreCostOptions& options) {
  ++impl_->asked;
  return impl_->get(problem, core, options);
}

std::size_t CoreCostCache::solved() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->entries.size();
}

std::size_t CoreCostCache::asked() const {
  return impl_->asked;
}

} // namespace monet
