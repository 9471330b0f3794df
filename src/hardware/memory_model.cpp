#include "monet/hardware/memory_model.hpp"

#include "hardware/sram_table.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/technology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace monet {

namespace {

constexpr std::array<int, 5> kNodes{90, 65, 45, 32, 22};
constexpr int kReferenceNode = 45; // complete; what the coarse nodes are filled from
constexpr int kLastSize = 30;      // 1 GiB, beyond the table
constexpr int kLastWord = 16;
constexpr int kMostSplits = 8; // 2^8 macros
constexpr double kBankBytes = 1024;
// A register of Aladdin's 40 nm library (Shao et al., ISCA 2014), taken as 45 nm.
constexpr double kRegisterPj = 0.009;       // a bit, read or written
constexpr double kRegisterMm2 = 5.98e-6;    // a bit
constexpr double kRegisterBytes = 8;        // up to here registers cost no more than themselves
constexpr double kControlWires = 32;        // address and control to every macro
constexpr double kPortEnergy = 0.40 / 1.40; // per port beyond two, of the figure with two:
constexpr double kPortArea = 0.5;           // what the second port adds in the table, by median

LogGrid wide_grid() {
  return LogGrid(SramTable::kFirstSize, kLastSize - SramTable::kFirstSize + 1,
                 SramTable::kFirstWord, kLastWord - SramTable::kFirstWord + 1);
}

/// A grid beyond the table: words of more than 4096 bits are arrays side by side, and sizes go on
/// as they grew over the last factor of four.
LogGrid extended(const LogGrid& table) {
  LogGrid grid = wide_grid();
  for (int w = SramTable::kFirstWord; w <= SramTable::kLastWord; ++w) {
    for (int s = SramTable::kFirstSize; s <= kLastSize; ++s) {
      const double last = table.at(SramTable::kLastSize, w);
      const double slope = std::max(0.0, (last - table.at(SramTable::kLastSize - 2, w)) / 2);
      grid.at(s, w) =
          s <= SramTable::kLastSize ? table.at(s, w) : last + slope * (s - SramTable::kLastSize);
    }
  }
  for (int w = SramTable::kLastWord + 1; w <= kLastWord; ++w) {
    for (int s = SramTable::kFirstSize; s <= kLastSize; ++s) {
      const int halvings = w - SramTable::kLastWord;
      grid.at(s, w) = halvings * std::log(2.0) +
                      grid.at(std::max(s - halvings, SramTable::kFirstSize), SramTable::kLastWord);
    }
  }
  return grid;
}

/// What one memory costs, and how it is put together.
struct Built {
  std::array<double, kSramFigures> figures{}; ///< in the order of SramFigure
  double wiring_pj = 0;
};

double figure(const Built& built, SramFigure which) {
  return built.figures[static_cast<std::size_t>(which)];
}

/// All grids of one node and kind of port.
struct NodeModel {
  std::vector<LogGrid> table; ///< as measured, holes filled
  std::vector<LogGrid> whole; ///< one array; beyond the table too; monotone
  std::vector<LogGrid> split; ///< the best split; monotone
  std::vector<int> splits;    ///< per cell m: 2^m macros
  std::vector<double> wiring; ///< per cell: the wires' part of the read energy

  NodeModel(const SramTable& table, int node_nm);
  Built built(int size, int word, int m, double node_nm) const;
};

std::size_t cell(int size, int word) {
  return static_cast<std::size_t>(size - SramTable::kFirstSize) * (kLastWord + 1) +
         static_cast<std::size_t>(word);
}

/// The memory as 2^m macros in a square, each with 1/2^m of the size and of every word, so that
/// all are read together. From the middle of the square's edge a macro's port is 3/4 of the side
/// away on average, less what is within the macro; 32 wires of address and control reach all.
Built NodeModel::built(int size, int word, int m, double node_nm) const {
  Built memory;
  const double macros = std::exp2(m);
  for (std::size_t i = 0; i < kSramFigures; ++i) {
    const double macro = std::exp(whole[i].at(size - m, word - m));
    memory.figures[i] =
        static_cast<SramFigure>(i) == SramFigure::access_ns ? macro : macro * macros;
  }
  const double side = std::sqrt(figure(memory, SramFigure::area_mm2));
  const double data_mm = 0.75 * side * (1 - 1 / std::sqrt(macros));
  const double control_mm = side * (std::sqrt(macros) - 1);
  memory.wiring_pj =
      wire_pj_per_bit_mm(node_nm) * (std::exp2(word) * data_mm + kControlWires * control_mm);
  memory.figures[0] += memory.wiring_pj;
  memory.figures[1] += memory.wiring_pj;
  return memory;
}

bool in_table(int size, int word) {
  return size >= SramTable::kFirstSize && size <= SramTable::kLastSize &&
         word >= SramTable::kFirstWord && word <= SramTable::kLastWord;
}

NodeModel::NodeModel(const SramTable& points, int node_nm)
    : split(kSramFigures, wide_grid()), splits(cell(kLastSize, kLastWord) + 1),
      wiring(splits.size()) {
  for (std::size_t i = 0; i < kSramFigures; ++i) {
    table.push_back(points.grid(static_cast<SramFigure>(i)));
    LogGrid monotone = table.back();
    if (static_cast<SramFigure>(i) != SramFigure::access_ns) {
      make_monotone(monotone);
    }
    whole.push_back(extended(monotone));
    make_monotone(whole.back()); // beyond the table
  }
  for (int s = SramTable::kFirstSize; s <= kLastSize; ++s) {
    for (int w = SramTable::kFirstWord; w <= kLastWord; ++w) {
      const Built one = built(s, w, 0, node_nm);
      Built best = one;
      int best_m = 0;
      for (int m = 1; m <= kMostSplits; ++m) {
        if (!in_table(s - m, w - m))
          continue;
        const Built parts = built(s, w, m, node_nm);
        if (figure(parts, SramFigure::area_mm2) <= figure(one, SramFigure::area_mm2) &&
            parts.figures[0] + parts.figures[1] < best.figures[0] + best.figures[1]) {
          best = parts;
          best_m = m;
        }
      }
      for (std::size_t i = 0; i < kSramFigures; ++i)
        split[i].at(s, w) = std::log(best.figures[i]);
      splits[cell(s, w)] = best_m;
      wiring[cell(s, w)] = best.wiring_pj / best.figures[0];
    }
  }
  for (std::size_t i = 0; i + 1 < kSramFigures; ++i)
    make_monotone(split[i]); // where the number of macros changes
}

/// Models of all nodes; [node][ports - 1].
const std::vector<std::array<NodeModel, 2>>& models() {
  static const std::vector<std::array<NodeModel, 2>> all = [] {
    std::vector<std::array<NodeModel, 2>> made;
    const std::array<SramTable, 2> reference{SramTable(sram_points(), kReferenceNode, 1),
                                             SramTable(sram_points(), kReferenceNode, 2)};
    for (const int node : kNodes) {
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
  if (node_nm <= kNodes.back())
    return {kNodes.size() - 1, kNodes.size() - 1, 0};
  std::size_t i = 0;
  while (node_nm < kNodes[i + 1])
    ++i;
  const double from = kNodes[i];
  return {i, i + 1, std::log(node_nm / from) / std::log(kNodes[i + 1] / from)};
}

using Grids = std::vector<LogGrid> NodeModel::*;

/// The figures of an SRAM of 1 KiB or more, from one kind of grid. Monotone: interpolations of
/// monotone grids.
MemoryFigures sram_figures(const MemoryQuery& query, Grids grids, double log2_bytes) {
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

/// Less than 1 KiB: log-log in the size between registers (8 bytes) and the SRAM of 1 KiB. An end
/// of the line is never above the other, so it rises in size; both ends rise in the word.
MemoryFigures register_figures(const MemoryQuery& query, const MemoryFigures& kilobyte) {
  const double bits = static_cast<double>(query.size.value);
  const double word = static_cast<double>(query.word_bits);
  const double bytes = std::max(bits / 8, kRegisterBytes);
  const double share = std::log(bytes / kRegisterBytes) / std::log(kBankBytes / kRegisterBytes);
  const MemoryFigures bit = register_bit(query.node_nm);
  const double access = word * bit.read_pj;
  const auto line = [&](double registers, double sram) {
    const double low = std::min(registers, sram);
    return low * std::pow(sram / low, share);
  };
  MemoryFigures figures;
  figures.read_pj = line(access, kilobyte.read_pj);
  figures.write_pj = line(access, kilobyte.write_pj);
  figures.area_mm2 = line(8 * kRegisterBytes * bit.area_mm2, kilobyte.area_mm2) *
                     std::min(1.0, bits / (8 * kRegisterBytes));
  figures.access_ns = kilobyte.access_ns;
  return figures;
}

void check(const MemoryQuery& query) {
  const auto refuse = [](const std::string& what) {
    throw InfeasibleError("memory model: " + what);
  };
  if (query.node_nm < kSmallestNode || query.node_nm > kLargestNode)
    refuse(fmt::format("{:g} nm is not between {:g} and {:g} nm", query.node_nm, kSmallestNode,
                       kLargestNode));
  if (query.size.value < 1 || query.size.value > kMostModelledBits)
    refuse(fmt::format("{} bits are not between 1 and {} (1 GiB)", query.size.value,
                       kMostModelledBits));
  if (query.word_bits < 1 || query.word_bits > kMostWordBits)
    refuse(
        fmt::format("words of {} bits are not between 1 and {}", query.word_bits, kMostWordBits));
  if (query.ports < 1)
    refuse(fmt::format("{} ports", query.ports));
}

double log2_bytes_of(const MemoryQuery& query) {
  return std::log2(static_cast<double>(query.size.value)) - 3;
}

} // namespace

MemoryCost memory_cost(const MemoryQuery& query) {
  check(query);
  MemoryCost cost;
  const double log2_bytes = std::max<double>(log2_bytes_of(query), SramTable::kFirstSize);
  cost.monolithic = sram_figures(query, &NodeModel::whole, log2_bytes);
  MemoryFigures split = sram_figures(query, &NodeModel::split, log2_bytes);
  split = smaller(split, cost.monolithic);
  cost.registers = log2_bytes_of(query) < SramTable::kFirstSize;
  if (cost.registers) {
    cost.figures = register_figures(query, split);
    cost.monolithic = register_figures(query, cost.monolithic);
    return cost;
  }
  cost.figures = split;
  const NodeModel& model = models()[share_of(query.node_nm).first][query.ports == 1 ? 0 : 1];
  const double log2_word = std::log2(static_cast<double>(query.word_bits));
  const int size =
      std::clamp(static_cast<int>(std::ceil(log2_bytes)), SramTable::kFirstSize, kLastSize);
  const int word =
      std::clamp(static_cast<int>(std::ceil(log2_word)), SramTable::kFirstWord, kLastWord);
  cost.macros = std::int64_t{1} << model.splits[cell(size, word)];
  cost.wiring_pj = model.wiring[cell(size, word)] * cost.figures.read_pj;
  return cost;
}

MemoryFigures tabulated_sram(const MemoryQuery& query) {
  check(query);
  return sram_figures(query, &NodeModel::table, log2_bytes_of(query));
}

MemoryFigures register_bit(double node_nm) {
  const double pj = kRegisterPj * logic_energy_scale(node_nm);
  return {pj, pj, kRegisterMm2 * logic_area_scale(node_nm), 0};
}

} // namespace monet
