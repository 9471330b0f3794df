#include "execute/kernels/kernel.hpp"

#include "monet/execute/execute.hpp"

#include <array>
#include <map>

namespace monet {

namespace {

constexpr std::array kFamilies{
    &product_kernels,   &pointwise_kernels,    &row_kernels,           &activation_kernels,
    &reduction_kernels, &movement_kernels,     &normalization_kernels, &update_kernels,
    &pooling_kernels,   &parts_kernels,        &indexing_kernels,      &resize_kernels,
    &attention_kernels, &microsoft_kernels,    &random_kernels,        &masked_kernels,
    &loss_kernels,      &quantization_kernels, &grid_sample_kernels,   &roi_align_kernels,
    &ctc_kernels,       &scaled_cast_kernels,
};

std::string_view domain_of(const Operator& op) {
  return op.domain == "ai.onnx" ? std::string_view{} : std::string_view(op.domain);
}

std::map<std::pair<std::string_view, std::string_view>, KernelEntry> by_type() {
  std::map<std::pair<std::string_view, std::string_view>, KernelEntry> entries;
  for (const auto family : kFamilies) {
    for (const KernelEntry& entry : family())
      entries.emplace(std::pair(entry.domain, entry.op_type), entry);
  }
  return entries;
}

} // namespace

const KernelEntry* find_kernel(const Operator& op) {
  static const auto entries = by_type();
  const auto found = entries.find(std::pair(domain_of(op), std::string_view(op.op_type)));
  return found == entries.end() ? nullptr : &found->second;
}

bool is_executable(const Operator& op) {
  return find_kernel(op) != nullptr;
}

} // namespace monet
