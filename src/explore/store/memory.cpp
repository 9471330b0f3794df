// The DesignStore in memory, for explorations without a store file.
#include "monet/base/errors.hpp"
#include "monet/explore/store.hpp"

#include <map>
#include <mutex>
#include <set>

namespace monet {

namespace {

class MemoryStore final : public DesignStore {
public:
  std::vector<std::optional<DesignResult>> find(std::span<const DesignId> ids) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::optional<DesignResult>> found;
    found.reserve(ids.size());
    for (const DesignId id : ids) {
      const auto at = rows_.find(id);
      found.push_back(at == rows_.end() ? std::nullopt : std::optional(at->second));
    }
    return found;
  }

  std::vector<DesignId> claim(std::span<const DesignId> ids, std::size_t most) override {
    const std::lock_guard lock(mutex_);
    std::vector<DesignId> claimed;
    for (const DesignId id : ids) {
      if (claimed.size() == most)
        break;
      if (!rows_.contains(id) && claims_.insert(id).second)
        claimed.push_back(id);
    }
    return claimed;
  }

  void put(std::span<const DesignResult> results) override {
    const std::lock_guard lock(mutex_);
    for (const DesignResult& result : results) {
      internal_check(rows_.emplace(result.id, result).second, "a design was evaluated twice");
      claims_.erase(result.id);
    }
  }

  void each(const std::function<void(const DesignResult&)>& row) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, result] : rows_)
      row(result);
  }

  std::uint64_t size() override {
    const std::lock_guard lock(mutex_);
    return rows_.size();
  }

private:
  std::mutex mutex_;
  std::map<DesignId, DesignResult> rows_;
  std::set<DesignId> claims_;
};

} // namespace

std::unique_ptr<DesignStore> memory_store() {
  return std::make_unique<MemoryStore>();
}

} // namespace monet
