#include "schedule/random_systems.hpp"

namespace monet::testing {

namespace {

class SystemMaker {
public:
  SystemMaker(Random& random, const SystemShape& shape) : random_(random), shape_(shape) {}

  Chip make() {
    chip_.name = "random";
    const auto n = static_cast<std::size_t>(random_.between(1, shape_.cores));
    const bool alike = random_.chance(50);
    for (std::size_t c = 0; c < n; ++c)
      chip_.cores.push_back(alike && c > 0 ? chip_.cores.front() : core(c == 0));
    for (std::size_t c = 0; c < n; ++c)
      chip_.cores[c].name = fmt::format("core{}", c);
    share_memories();
    connect(n);
    add_offchip(n);
    if (shape_.latency) {
      for (Link& link : chip_.links)
        link.latency_cycles = random_.one_of<std::int64_t>({0, 1, 5, 40, 1000});
    }
    if (shape_.rows) {
      chip_.cores.back().memories[0].dram_rows = {random_.one_of<std::int64_t>({1, 2, 4, 16}),
                                                  random_.one_of<std::int64_t>({64, 100, 1 << 12}),
                                                  random_.one_of<std::int64_t>({0, 1, 7, 40, 300})};
    }
    make_routes(chip_);
    verify(chip_);
    return std::move(chip_);
  }

private:
  Core core(bool runs_everything) {
    Core core;
    core.memories = memories();
    core.mac_energy_pj = static_cast<double>(random_.between(1, 4)) / 2;
    core.array = {{"D1", random_.between(1, 32)}};
    core.kind = !runs_everything && random_.chance(25) ? CoreKind::vector : CoreKind::array;
    core.runs_vector_operators =
        core.kind == CoreKind::array && (runs_everything || random_.chance(60));
    return core;
  }

  std::int64_t bits() { return random_.between(shape_.min_bits, shape_.max_bits); }
  /// One for everything, or one for weights or results and one for the rest.
  std::vector<Memory> memories() {
    Memory all = one_memory("sram", bits(), 64);
    if (!random_.chance(20))
      return {all};
    const MemoryOperand apart = random_.one_of({MemoryOperand::I2, MemoryOperand::O});
    Memory own = one_memory("own", bits(), 64);
    const auto keep = [](Memory& memory, auto wanted) {
      std::erase_if(memory.operands, [&](MemoryOperand o) { return !wanted(o); });
      std::erase_if(memory.ports[0].allocation,
                    [&](const PortUse& use) { return !wanted(use.operand); });
    };
    keep(own, [&](MemoryOperand o) { return o == apart; });
    keep(all, [&](MemoryOperand o) { return o != apart; });
    return {all, own};
  }

  /// Cores 0 and 1, or 1 to 3, have one memory together.
  void share_memories() {
    const std::size_t n = chip_.cores.size();
    if (n < 2 || !random_.chance(20))
      return;
    std::vector<CoreId> group{CoreId(n - 2), CoreId(n - 1)};
    if (n > 3 && random_.chance(50))
      group.insert(group.begin(), CoreId(n - 3));
    for (const CoreId core : group)
      chip_.cores[core.index()].memories = chip_.cores[group.front().index()].memories;
    chip_.shared_memory = {group};
  }

  bool share(CoreId a, CoreId b) const {
    for (const auto& group : chip_.shared_memory) {
      const bool has_a = std::find(group.begin(), group.end(), a) != group.end();
      if (has_a && std::find(group.begin(), group.end(), b) != group.end())
        return true;
    }
    return false;
  }

  void add_link(std::vector<CoreId> cores, LinkReach reach, std::int64_t bandwidth) {
    Link link;
    link.name = fmt::format("link{}", chip_.links.size());
    link.cores = std::move(cores);
    link.reach = reach;
    link.bandwidth_bits_per_cycle = bandwidth;
    link.energy_pj_per_cycle = static_cast<double>(random_.between(0, 4)) / 4;
    link.energy_pj_per_bit = static_cast<double>(random_.between(0, 2)) / 4;
    chip_.links.push_back(link);
  }
  void both_ways(std::size_t a, std::size_t b, std::int64_t bandwidth) {
    if (share(CoreId(a), CoreId(b)))
      return;
    add_link({CoreId(a), CoreId(b)}, LinkReach::forward, bandwidth);
    add_link({CoreId(b), CoreId(a)}, LinkReach::forward, bandwidth);
  }

  void connect(std::size_t n) {
    const std::int64_t bandwidth = random_.one_of<std::int64_t>({7, 16, 32, 64, 100, 1000});
    const auto topology = random_.between(0, 6);
    if (n == 1 || topology == 0)
      return;
    if (topology == 1 || topology == 2) {
      add_link(cores_below(n), LinkReach::any_pair, bandwidth);
      if (topology == 2)
        both_ways(0, n - 1, 2 * bandwidth);
    } else if (topology == 3 || topology == 4) {
      for (std::size_t c = 0; c + 1 < n; ++c)
        both_ways(c, c + 1, bandwidth);
      if (topology == 4 && n > 2)
        both_ways(n - 1, 0, bandwidth);
    } else if (topology == 5) { // two columns
      for (std::size_t c = 0; c < n; ++c) {
        if (c % 2 == 0 && c + 1 < n)
          both_ways(c, c + 1, bandwidth);
        if (c + 2 < n)
          both_ways(c, c + 2, bandwidth);
      }
    } else {
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = a + 1; b < n; ++b)
          both_ways(a, b, bandwidth);
      }
    }
  }

  std::vector<CoreId> cores_below(std::size_t n) const {
    std::vector<CoreId> cores;
    for (std::size_t c = 0; c < n; ++c)
      cores.push_back(CoreId(c));
    return cores;
  }

  void add_offchip(std::size_t n) {
    const std::int64_t bandwidth = random_.one_of<std::int64_t>({8, 33, 64, 64, 256, 2048});
    Core dram;
    dram.name = "dram";
    dram.kind = CoreKind::offchip;
    dram.memories = {one_memory("dram", 1LL << 40, bandwidth)};
    const bool two_ports = random_.chance(40);
    if (two_ports) {
      MemoryPort read = dram.memories[0].ports[0];
      read.type = PortType::read;
      read.name = "r";
      MemoryPort write = read;
      write.type = PortType::write;
      write.name = "w";
      std::erase_if(read.allocation, [](const PortUse& use) { return writes(use.direction); });
      std::erase_if(write.allocation, [](const PortUse& use) { return !writes(use.direction); });
      dram.memories[0].ports = {read, write};
    }
    dram.array = {{"D1", 1}};
    chip_.cores.push_back(dram);
    chip_.offchip = CoreId(n);
    const std::int64_t width = random_.chance(70) ? bandwidth : random_.between(8, 512);
    if (two_ports && random_.chance(60)) {
      add_link(cores_below(n + 1), LinkReach::offchip_read, width);
      add_link(cores_below(n + 1), LinkReach::offchip_write, width);
    } else if (random_.chance(20)) { // one bus for everything
      add_link(cores_below(n + 1), LinkReach::any_pair, width);
    } else {
      add_link(cores_below(n + 1), LinkReach::offchip_both, width);
    }
  }
  static bool writes(Direction direction) {
    return direction == Direction::fh || direction == Direction::fl;
  }

  Random& random_;
  const SystemShape& shape_;
  Chip chip_;
};

} // namespace

Chip random_chip(Random& random, const SystemShape& shape) {
  return SystemMaker(random, shape).make();
}

} // namespace monet::testing
