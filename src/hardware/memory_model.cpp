// Energy, area and access time of SRAM, register files and DRAM channels by size, word and node.
// pricing.cpp calls it for memories that leave these figures out.
#include "hardware/shared/memory_model.hpp"

#include "hardware/shared/technology.hpp"
#include "hardware/sram_table.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace monet {

namespace {

// JEDEC channels at the fastest common rate: LPDDR4 16 bits at 4266 MT/s (JESD209-4), LPDDR5 16 at
// 6400 (JESD209-5), DDR4 64 at 3200 (JESD79-4), DDR5 32 at 6400 (JESD79-5), HBM2E 128 at 3600
// (JESD235D), HBM3 64 at 6400 (JESD238).
constexpr std::array<DramKind, 6> kDramKinds{
    {{"lpddr4", 14.0, 8.532, "H. Ha, thesis, Stanford 2018: 14.0 pJ/bit, 32 Gb device"},
     {"lpddr5", 9.8, 12.8, "derived: 30 % below LPDDR4, as Samsung announced in July 2018"},
     {"ddr4", 20.3, 25.6, "Jouppi et al., ISCA 2021, table 2: 1300 pJ for 64 bits"},
     {"ddr5", 17.1, 25.6, "derived: DDR4 at 1.1 V in place of 1.2 V, squared"},
     {"hbm2e", 5.5, 57.6,
      "Jouppi et al., ISCA 2021, table 2: 250 to 450 pJ for 64 bits, the middle"},
     {"hbm3", 4.6, 51.2, "derived: HBM2 at 1.1 V in place of 1.2 V, squared"}}};

constexpr int kReferenceNode = 45; // complete; fills the holes of coarse nodes
// The model's grids, in powers of two: 1 bit to 1 GiB, words of 1 to 65536 bits.
constexpr int kFirstSize = -3;
constexpr int kLastSize = 30;
constexpr int kFirstWord = 0;
constexpr int kLastWord = 16;
constexpr int kMaxSplits = 8; // 2^8 macros
// A register of Aladdin's 40 nm library (Shao et al., ISCA 2014), taken as 45 nm.
constexpr double kRegisterPj = 0.009;       // a bit, read or written
constexpr double kRegisterMm2 = 5.98e-6;    // a bit
constexpr int kRegisterSize = 3;            // up to 8 bytes a file costs what its registers cost
constexpr int kWidestFile = 8;              // 256 bits: the widest word of a table's 1 KiB
constexpr double kControlWires = 32;        // address and control to every macro
constexpr double kPortEnergy = 0.40 / 1.40; // per port beyond two, of the figure with two:
constexpr double kPortArea = 0.5;           // what the second port adds in the table, by median

/// Extends the table monotonically. Words of more than 4096 bits are parallel arrays, narrow words
/// cost the same as 8 bits, and sizes grow as over the table's last factor of four.
LogGrid extended(const LogGrid& table) {
  LogGrid grid(kFirstSize, kLastSize - kFirstSize + 1, kFirstWord, kLastWord - kFirstWord + 1);
  for (int w = kFirstWord; w <= kLastWord; ++w) {
    const int word = std::clamp(w, SramTable::kFirstWord, SramTable::kLastWord);
    const int more = w - word > 0 ? w - word : 0; // doublings
    const double last = table.at(SramTable::kLastSize, word);
    const double slope = std::max(0.0, (last - table.at(SramTable::kLastSize - 2, word)) / 2);
    for (int s = kFirstSize; s <= kLastSize; ++s) {
      const int size = std::max(s - more, SramTable::kFirstSize);
      const double value = size <= SramTable::kLastSize
                               ? table.at(size, word)
                               : last + slope * (size - SramTable::kLastSize);
      grid.at(s, w) = more * std::log(2.0) + value;
      // Cells outside the table must not contradict the table.
      if (more > 0 || (s > SramTable::kLastSize && w > kFirstWord))
        grid.at(s, w) = std::max(grid.at(s, w), grid.at(s, w - 1));
    }
  }
  return grid;
}

/// Adds register files, below 1 KiB: log-log in the size between registers (8 bytes and below) and
/// the grid's 1 KiB. The lower end is never above the upper one, so the line rises with size; both
/// ends rise with the word.
void put_registers(LogGrid& grid, SramFigure figure, const MemoryFigures& bit) {
  for (int w = kFirstWord; w <= kLastWord; ++w) {
    const double kilobyte = grid.at(SramTable::kFirstSize, w);
    const double file = figure == SramFigure::area_mm2
                            ? std::log(bit.area_mm2 * std::exp2(kRegisterSize + 3))
                            : std::log(bit.read_pj * std::exp2(w));
    const double low = std::min(file, kilobyte);
    for (int s = kFirstSize; s < SramTable::kFirstSize; ++s) {
      const double share = static_cast<double>(std::max(s, kRegisterSize) - kRegisterSize) /
                           (SramTable::kFirstSize - kRegisterSize);
      grid.at(s, w) = low + (kilobyte - low) * share;
      if (figure == SramFigure::area_mm2 && s < kRegisterSize)
        grid.at(s, w) += (s - kRegisterSize) * std::log(2.0);
    }
  }
}

/// Figures of one memory, and its structure.
struct Built {
  std::array<double, kSramFigures> figures{}; ///< in the order of SramFigure
  double wiring_pj = 0;

  double area() const { return figures[static_cast<std::size_t>(SramFigure::area_mm2)]; }
  double energy() const { return figures[0] + figures[1]; } ///< one read and one write
  bool no_dearer(const Built& other) const {
    return figures[0] <= other.figures[0] && figures[1] <= other.figures[1] &&
           area() <= other.area();
  }
};

/// All grids of one node and kind of port.
struct NodeModel {
  std::vector<LogGrid> table; ///< as measured, holes filled
  std::vector<LogGrid> whole; ///< one array or register file; monotone
  std::vector<LogGrid> split; ///< the best split; monotone
  std::vector<int> splits;    ///< per cell m: 2^m macros
  std::vector<double> wiring; ///< per cell: the wires' part of the read energy

  NodeModel(const SramTable& points, int node_nm);

private:
  Built built(int size, int word, int m, double wire_pj) const;
  void choose_split(int size, int word, double wire_pj);
};

std::size_t cell(int size, int word) {
  return static_cast<std::size_t>((size - kFirstSize) * (kLastWord + 1) + word);
}

/// Figures of a memory of 2^m macros in a square, each with 1/2^m of the size and of every word;
/// all are read together. A macro's port is on average 3/4 of the side from the middle of the
/// square's edge, less the distance inside the macro; 32 address and control wires reach every
/// macro.
Built NodeModel::built(int size, int word, int m, double wire_pj) const {
  Built memory;
  const double macros = std::exp2(m);
  for (std::size_t i = 0; i < kSramFigures; ++i) {
    const bool time = static_cast<SramFigure>(i) == SramFigure::access_ns;
    memory.figures[i] = std::exp(whole[i].at(size - m, word - m)) * (time ? 1 : macros);
  }
  const double side = std::sqrt(memory.area());
  const double data_mm = 0.75 * side * (1 - 1 / std::sqrt(macros));
  const double control_mm = side * (std::sqrt(macros) - 1);
  memory.wiring_pj = wire_pj * (std::exp2(word) * data_mm + kControlWires * control_mm);
  memory.figures[0] += memory.wiring_pj;
  memory.figures[1] += memory.wiring_pj;
  return memory;
}

/// Whether macros of that size and word are known: table arrays or register files.
bool is_macro(int size, int word) {
  if (size >= SramTable::kFirstSize)
    return word >= SramTable::kFirstWord && word <= SramTable::kLastWord;
  return size >= kFirstSize && word >= SramTable::kFirstWord && word <= kWidestFile;
}

/// Chooses the split with the least energy among those that are no worse than one array in any
/// figure.
void NodeModel::choose_split(int size, int word, double wire_pj) {
  const Built one = built(size, word, 0, wire_pj);
  Built best = one;
  int best_m = 0;
  for (int m = 1; m <= kMaxSplits; ++m) {
    if (!is_macro(size - m, word - m))
      continue;
    const Built parts = built(size, word, m, wire_pj);
    if (parts.no_dearer(one) && parts.energy() < best.energy()) {
      best = parts;
      best_m = m;
    }
  }
  for (std::size_t i = 0; i < kSramFigures; ++i)
    split[i].at(size, word) = std::log(best.figures[i]);
  splits[cell(size, word)] = best_m;
  wiring[cell(size, word)] = best.wiring_pj / best.figures[0];
}

NodeModel::NodeModel(const SramTable& points, int node_nm)
    : splits(cell(kLastSize, kLastWord) + 1), wiring(splits.size()) {
  for (std::size_t i = 0; i < kSramFigures; ++i) {
    const auto figure = static_cast<SramFigure>(i);
    table.push_back(points.grid(figure));
    LogGrid monotone = table.back();
    if (figure != SramFigure::access_ns)
      make_monotone(monotone);
    whole.push_back(extended(monotone));
    if (figure == SramFigure::access_ns)
      continue;
    put_registers(whole.back(), figure, register_bit(node_nm));
  }
  split = whole;
  for (int s = kFirstSize; s <= kLastSize; ++s) {
    for (int w = kFirstWord; w <= kLastWord; ++w)
      choose_split(s, w, wire_pj_per_bit_mm(node_nm));
  }
  for (std::size_t i = 0; i + 1 < kSramFigures; ++i)
    make_monotone(split[i]); // the number of macros changes between cells
}

/// Models of all nodes; [node][ports - 1].
const std::vector<std::array<NodeModel, 2>>& models() {
  static const std::vector<std::array<NodeModel, 2>> all = [] {
    std::vector<std::array<NodeModel, 2>> made;
    const std::array<SramTable, 2> reference{SramTable(sram_points(), kReferenceNode, 1),
                                             SramTable(sram_points(), kReferenceNode, 2)};
    for (const int node : kSramNodes) {
      const auto model = [&](int ports) {
        const SramTable& complete = reference.at(static_cast<std::size_t>(ports - 1));
        return NodeModel(node == 22 || node == kReferenceNode
                             ? SramTable(sram_points(), node, ports)
                             : SramTable(sram_points(), node, ports, &complete),
                         node);
      };
      made.push_back({model(1), model(2)});
    }
    return made;
  }();
  return all;
}

/// The two tables around a node and the share of the second.
struct NodeShare {
  std::size_t first = 0, second = 0;
  double share = 0;
};

NodeShare share_of(double node_nm) {
  if (node_nm <= kSramNodes.back())
    return {kSramNodes.size() - 1, kSramNodes.size() - 1, 0};
  std::size_t i = 0;
  while (node_nm <= kSramNodes[i + 1])
    ++i;
  const double from = kSramNodes[i];
  return {i, i + 1, std::log(node_nm / from) / std::log(kSramNodes[i + 1] / from)};
}

using Grids = std::vector<LogGrid> NodeModel::*;

/// Figures interpolated in one kind of grid; monotone if the grids are.
MemoryFigures model_figures(const MemoryQuery& query, Grids grids, double log2_bytes) {
  const NodeShare node = share_of(query.node_nm);
  const std::size_t ports = query.ports == 1 ? 0 : 1;
  const double log2_word = std::log2(static_cast<double>(query.word_bits));
  const auto value = [&](SramFigure which) {
    const auto at = [&](std::size_t n) {
      return (models()[n][ports].*grids)[static_cast<std::size_t>(which)].interpolate(log2_bytes,
                                                                                      log2_word);
    };
    const double first = at(node.first);
    return std::exp(node.share == 0 ? first : first + (at(node.second) - first) * node.share);
  };
  const double more = std::max(0, query.ports - 2);
  const double energy = sram_energy_scale(query.node_nm) * (1 + kPortEnergy * more);
  return {value(SramFigure::read_pj) * energy, value(SramFigure::write_pj) * energy,
          value(SramFigure::area_mm2) * sram_area_scale(query.node_nm) * (1 + kPortArea * more),
          value(SramFigure::access_ns)};
}

MemoryFigures smaller(const MemoryFigures& a, const MemoryFigures& b) {
  return {std::min(a.read_pj, b.read_pj), std::min(a.write_pj, b.write_pj),
          std::min(a.area_mm2, b.area_mm2), a.access_ns};
}

void check(const MemoryQuery& query) {
  const auto refuse = [](const std::string& what) {
    throw InfeasibleError("memory model: " + what);
  };
  if (query.node_nm < kSmallestNode || query.node_nm > kLargestNode)
    refuse(fmt::format("{:g} nm is not between {:g} and {:g} nm", query.node_nm, kSmallestNode,
                       kLargestNode));
  if (query.size.value < 1 || query.size.value > kMaxModelledBits)
    refuse(fmt::format("{} bits are not between 1 and {} (1 GiB)", query.size.value,
                       kMaxModelledBits));
  if (query.word_bits < 1 || query.word_bits > kMaxWordBits)
    refuse(fmt::format("words of {} bits are not between 1 and {}", query.word_bits, kMaxWordBits));
  if (query.ports < 1)
    refuse(fmt::format("{} ports", query.ports));
}

double log2_bytes_of(const MemoryQuery& query) {
  return std::log2(static_cast<double>(query.size.value)) - 3;
}

} // namespace

std::span<const DramKind> dram_kinds() {
  return kDramKinds;
}

const DramKind* find_dram_kind(std::string_view name) {
  const auto* const found = std::ranges::find(kDramKinds, name, &DramKind::name);
  return found == kDramKinds.end() ? nullptr : found;
}

MemoryFigures register_bit(double node_nm) {
  const double pj = kRegisterPj * logic_energy_scale(node_nm);
  return {pj, pj, kRegisterMm2 * logic_area_scale(node_nm), 0};
}

MemoryCost memory_cost(const MemoryQuery& query) {
  check(query);
  MemoryCost cost;
  const double log2_bytes = log2_bytes_of(query);
  cost.monolithic = model_figures(query, &NodeModel::whole, log2_bytes);
  cost.figures = smaller(model_figures(query, &NodeModel::split, log2_bytes), cost.monolithic);
  // Structure: that of the next powers of two, at the larger of the two nodes around.
  const NodeModel& model = models()[share_of(query.node_nm).first][query.ports == 1 ? 0 : 1];
  const double log2_word = std::log2(static_cast<double>(query.word_bits));
  const int size = static_cast<int>(std::ceil(log2_bytes));
  const std::size_t at = cell(size, static_cast<int>(std::ceil(log2_word)));
  cost.macros = std::int64_t{1} << model.splits[at];
  cost.wiring_pj = model.wiring[at] * cost.figures.read_pj;
  cost.registers = size - model.splits[at] < SramTable::kFirstSize;
  return cost;
}

MemoryFigures tabulated_sram(const MemoryQuery& query) {
  check(query);
  return model_figures(query, &NodeModel::table, log2_bytes_of(query));
}

} // namespace monet
