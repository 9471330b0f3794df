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
    parts[cut.dim] = parts[cut.dim] * cut.count + number / below;
    number %= below;
  }
}

PartCombos::PartCombos(const PartIndex& index, std::vector<std::uint32_t> dims)
    : dims_(std::move(dims)) {
  offsets_ = {0};
  for (const std::uint32_t dim : dims_) {
    counts_.push_back(index.parts(dim));
    std::vector<std::uint32_t> finer;
    finer.reserve(offsets_.size() * counts_.back());
    for (const std::uint32_t offset : offsets_) {
      for (std::uint32_t part = 0; part < counts_.back(); ++part)
        finer.push_back(offset + index.offset(dim, part));
    }
    offsets_ = std::move(finer);
  }
  size_ = static_cast<std::uint32_t>(offsets_.size());
}

std::uint32_t PartCombos::combo_of(std::span<const std::uint32_t> parts) const {
  std::uint32_t combo = 0;
  for (std::size_t i = 0; i < dims_.size(); ++i)
    combo = combo * counts_[i] + parts[dims_[i]];
  return combo;
}

void PartCombos::parts_of(std::uint32_t combo, std::span<std::uint32_t> parts) const {
  for (std::size_t i = dims_.size(); i-- > 0;) {
    parts[dims_[i]] = combo % counts_[i];
    combo /= counts_[i];
  }
}

} // namespace monet
