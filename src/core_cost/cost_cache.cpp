// Thread-safe cache of core costs; tiling, scheduling and the searches request costs through it.
#include "core_cost/input_gradient/input_gradient.hpp"

#include "monet/base/stop.hpp"
#include "monet/core_cost/core_cost.hpp"

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

namespace monet {

namespace {

/// Costs by key, each computed once. Threads that request a key under computation wait for it.
/// Failures are cached and thrown again, except for Stopped and std::bad_alloc.
class Memo {
public:
  template <class Compute>
  const CoreCost& get(std::string key, Compute compute) {
    Entry* entry = nullptr;
    {
      const std::lock_guard lock(mutex_);
      auto& slot = entries_[std::move(key)];
      if (!slot)
        slot = std::make_unique<Entry>();
      entry = slot.get();
    }
    if (!entry->is_done.load(std::memory_order_acquire))
      fill(*entry, compute); // outside the lock
    if (entry->failure)
      std::rethrow_exception(entry->failure);
    return entry->value;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

private:
  struct Entry {
    std::atomic<bool> is_done{false};
    std::mutex mutex;
    CoreCost value;
    std::exception_ptr failure;
  };

  template <class Compute>
  static void fill(Entry& entry, Compute& compute) {
    const std::lock_guard lock(entry.mutex);
    if (entry.is_done.load(std::memory_order_relaxed))
      return;
    try {
      entry.value = compute();
    } catch (const Stopped&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      entry.failure = std::current_exception();
    }
    entry.is_done.store(true, std::memory_order_release);
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries_;
};

} // namespace

struct CoreCostCache::Impl {
  Memo costs;
  std::atomic<std::size_t> asked{0};

  /// A scattering problem requests the costs of its forms, which request none, so waiting cannot
  /// deadlock.
  const CoreCost& get(const CoreProblem& problem, const Core& core,
                      const CoreCostOptions& options) {
    return costs.get(signature(problem, core, options), [&] {
      return core_cost_detail::core_cost_with(
          problem, core, options,
          [this](const CoreProblem& part, const Core& on, const CoreCostOptions& as_is) {
            return get(part, on, as_is);
          });
    });
  }
};

CoreCostCache::CoreCostCache() : impl_(std::make_unique<Impl>()) {}
CoreCostCache::~CoreCostCache() = default;

const CoreCost& CoreCostCache::get(const CoreProblem& problem, const Core& core,
                                   const CoreCostOptions& options) {
  ++impl_->asked;
  return impl_->get(problem, core, options);
}

std::size_t CoreCostCache::solved() const {
  return impl_->costs.size();
}

std::size_t CoreCostCache::asked() const {
  return impl_->asked;
}

} // namespace monet
