#include "input_gradient.hpp"

#include "monet/core_cost/core_cost.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <unordered_map>

namespace monet {

namespace {

/// With its length, so that no two lists of names give the same key.
std::string named(const std::string& dim) {
  return std::to_string(dim.size()) + ':' + dim + ',';
}

std::string key_of(const CoreProblem& problem, const Core& core, const CoreCostOptions& options) {
  std::string key = signature(problem);
  const std::string core_key = signature(core);
  key += std::to_string(key.size()) + '|' + core_key + '|';
  key += std::to_string(static_cast<int>(options.objective)) + '|';
  key += std::to_string(options.lpf_limit) + '|' + (options.fixed_dataflow ? '1' : '0');
  key += signature(options.model) + (options.even_allocation ? '1' : '0');
  key += std::to_string(options.free_unrollings) + '|';
  key += std::to_string(options.generated_unrollings) + (options.mixed_unrollings ? '1' : '0');
  if (streams(problem))
    key += signature(options.offchip);
  for (const auto& on_dim : options.spatial) {
    key += '|';
    for (const Unrolling& u : on_dim)
      key += named(u.dim) + std::to_string(u.factor) + ';';
  }
  for (const auto& on_dim : options.spatial_hints) {
    key += '?';
    for (const std::string& dim : on_dim)
      key += named(dim);
  }
  for (const OrderedLoop& loop : options.temporal_order)
    key += '>' + named(loop.dim) + (loop.size ? std::to_string(*loop.size) : "*");
  // Others cost the same whatever is said about scattering.
  if (core_cost_detail::find_transposed(problem))
    key += '~' + std::to_string(static_cast<int>(options.input_gradient));
  return key;
}

} // namespace

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
  std::string key = key_of(problem, core, options);
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
