#include "tiling/edges/part_index.hpp"

namespace monet {

PartIndex::PartIndex(const OperatorTiling& tiling)
    : cuts_(tiling.cuts), tiles_(tiling.size()), offsets_(tiling.parts.size()) {
  std::uint32_t below = tiles_;
  for (const LoopCut& cut : cuts_) {
    below /= cut.count;
    if (cut.count == 1)
      continue;
    std::vector<std::uint32_t>& offsets = offsets_[cut.dim];
    if (offsets.empty()) {
      cut_dims_.push_back(cut.dim);
      offsets.push_back(0);
    }
    std::vector<std::uint32_t> finer;
    finer.reserve(offsets.size() * cut.count);
    for (const std::uint32_t offset : offsets) {
      for (std::uint32_t i = 0; i < cut.count; ++i)
        finer.push_back(offset + i * below);
    }
    offsets = std::move(finer);
  }
}

void PartIndex::parts_of(std::uint32_t number, std::span<std::uint32_t> parts) const {
  for (const std::uint32_t dim : cut_dims_)
    parts[dim] = 0;
  std::uint32_t below = tiles_;
  for (const LoopCut& cut : cuts_) {
    below /= cut.count;
    std::uint32_t& part = parts[cut.dim];
    part = part * cut.count + number / below;
    number %= below;
  }
}

PartCombos::PartCombos(const PartIndex& index, std::vector<std::uint32_t> dims)
    : dims_(std::move(dims)) {
  offsets_ = {0};
  for (const std::uint32_t dim : dims_) {
    const std::uint32_t count = index.parts(dim);
    counts_.push_back(count);
    std::vector<std::uint32_t> finer;
    finer.reserve(offsets_.size() * count);
    for (const std::uint32_t offset : offsets_) {
      for (std::uint32_t part = 0; part < count; ++part)
        finer.push_back(offset + index.offset(dim, part));
    }
    offsets_ = std::move(finer);
  }
  size_ = static_cast<std::uint32_t>(offsets_.size());
}

std::uint32_t PartCombos::combo_of(std::span<const std::uint32_t> parts) const {
  std::uint32_t combo = 0;
  auto count = counts_.begin(); // iterators: this is in inner loops
  for (const std::uint32_t dim : dims_)
    combo = combo * *count++ + parts[dim];
  return combo;
}

void PartCombos::parts_of(std::uint32_t combo, std::span<std::uint32_t> parts) const {
  auto count = counts_.rbegin();
  for (auto dim = dims_.rbegin(); dim != dims_.rend(); ++dim, ++count) {
    parts[*dim] = combo % *count;
    combo /= *count;
  }
}

} // namespace monet
