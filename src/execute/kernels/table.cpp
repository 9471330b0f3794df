#include "execute/kernels/kernel.hpp"

#include "monet/execute/execute.hpp"

#include <array>
#include <map>

namespace monet {

namespace {

using Family = std::span<const KernelEntry> (*)();
constexpr std::array kFamilies{
    Family{product_kernels},    Family{pointwise_kernels}, Family{row_kernels},
    Family{activation_kernels}, Family{reduction_kernels}, Family{normalization_kernels},
    Family{movement_kernels},   Family{update_kernels},    Family{pooling_kernels},
    Family{parts_kernels},      Family{indexing_kernels},  Family{resize_kernels},
    Family{attention_kernels},  Family{microsoft_kernels}, Family{random_kernels},
    Family{masked_kernels},     Family{loss_kernels},
};

std::string_view domain_of(const Operator& op) {
  return op.domain == "ai.onnx" ? std::string_view{} : std::string_view(op.domain);
}

using Index = std::map<std::pair<std::string_view, std::string_view>, const KernelEntry*>;

const Index& index() {
  static const Index made = [] {
    Index result;
    for (const Family family : kFamilies) {
      for (const KernelEntry& entry : family())
        result.emplace(std::pair(entry.domain, entry.op_type), &entry);
    }
    return result;
  }();
  return made;
}

} // namespace

const KernelEntry* find_kernel(const Operator& op) {
  const auto found = index().find(std::pair(domain_of(op), std::string_view(op.op_type)));
  return found == index().end() ? nullptr : found->second;
}

bool is_executable(const Operator& op) {
  return find_kernel(op) != nullptr;
}

} // namespace monet
