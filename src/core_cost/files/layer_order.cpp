#include "core_cost/files/layer_order.hpp"

#include <algorithm>

namespace monet::core_cost_detail {

std::vector<std::size_t> by_generation(const std::vector<std::vector<std::size_t>>& parents) {
  std::vector<std::vector<std::size_t>> children(parents.size());
  std::vector<std::size_t> waiting(parents.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    std::vector<std::size_t> different = parents[i];
    std::ranges::sort(different);
    different.erase(std::unique(different.begin(), different.end()), different.end());
    waiting[i] = different.size();
    for (const std::size_t parent : different)
      children[parent].push_back(i);
    if (different.empty())
      order.push_back(i);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::size_t child : children[order[next]]) {
      if (--waiting[child] == 0)
        order.push_back(child);
    }
  }
  return order;
}

} // namespace monet::core_cost_detail
