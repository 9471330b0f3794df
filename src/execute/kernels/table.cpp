// The table of kernels by operator type; execution looks kernels up here.
#include "execute/kernels/kernel.hpp"

#include "monet/execute/execute.hpp"

#include <algorithm>
#include <array>

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

bool precedes(const KernelEntry* a, const KernelEntry* b) {
  return a->op_type != b->op_type ? a->op_type.name() < b->op_type.name() : a->domain < b->domain;
}

/// All kernel entries, sorted by operator type.
std::vector<const KernelEntry*> by_type() {
  std::vector<const KernelEntry*> entries;
  for (const auto family : kFamilies) {
    for (const KernelEntry& entry : family())
      entries.insert(std::ranges::upper_bound(entries, &entry, precedes), &entry);
  }
  return entries;
}

} // namespace

const KernelEntry* find_kernel(const Operator& op) {
  static const std::vector<const KernelEntry*> kEntries = by_type();
  const KernelEntry wanted{domain_of(op), op.op_type, nullptr, nullptr, {}};
  const auto found = std::ranges::lower_bound(kEntries, &wanted, precedes);
  return found == kEntries.end() || precedes(&wanted, *found) ? nullptr : *found;
}

std::array<double, 2> attributes_of(const Operator& op) {
  std::array<double, 2> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const NumberAttribute& attribute = find_kernel(op)->attributes[i];
    if (!attribute.name.empty())
      values[i] = op.attributes.number(attribute.name, attribute.fallback);
  }
  return values;
}

bool is_executable(const Operator& op) {
  return find_kernel(op) != nullptr;
}

} // namespace monet
