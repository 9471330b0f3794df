// Cycles and energy of transfers from and to memories. Schedules, their bounds and the searches use
// it.
#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/chip.hpp"

#include <algorithm>
#include <limits>

namespace monet {

OffchipPort offchip_port(const Chip& chip) {
  internal_check(chip.offchip.has_value(), "asked for the off-chip memory of a chip without one");
  const Memory& memory = chip.cores[chip.offchip->index()].memories.back();
  OffchipPort port;
  port.capacity = memory.size;
  port.rows = memory.dram_rows;
  // Ports follow Stream: a single read-write port serves all accesses in turns. With more ports,
  // reads and writes overlap, each as wide as the widest port of its direction.
  port.shared = memory.ports.size() == 1;
  for (const MemoryPort& p : memory.ports) {
    if (p.type != PortType::write)
      port.read_bits_per_cycle = std::max(port.read_bits_per_cycle, p.bandwidth_max);
    if (p.type != PortType::read)
      port.write_bits_per_cycle = std::max(port.write_bits_per_cycle, p.bandwidth_max);
  }
  if (port.read_bits_per_cycle > 0)
    port.read_pj_per_bit = memory.read_energy_pj / static_cast<double>(port.read_bits_per_cycle);
  if (port.write_bits_per_cycle > 0)
    port.write_pj_per_bit = memory.write_energy_pj / static_cast<double>(port.write_bits_per_cycle);
  return port;
}

std::int64_t OffchipPort::min_cycles(std::int64_t read, std::int64_t written) const {
  const std::int64_t in = std::max<std::int64_t>(1, read_bits_per_cycle);
  const std::int64_t out = std::max<std::int64_t>(1, write_bits_per_cycle);
  return shared ? ceil_div(checked_add(read, written), std::max(in, out))
                : std::max(ceil_div(read, in), ceil_div(written, out));
}

double OffchipPort::min_cycles(double read, double written) const {
  const auto in = static_cast<double>(std::max<std::int64_t>(1, read_bits_per_cycle));
  const auto out = static_cast<double>(std::max<std::int64_t>(1, write_bits_per_cycle));
  return shared ? (read + written) / std::max(in, out) : std::max(read / in, written / out);
}

std::int64_t OffchipPort::rows_of_part(const PortTransfer& transfer, std::int64_t streaming) const {
  const std::int64_t all = transfer.streaming();
  if (transfer.rows == 0 || streaming == all)
    return transfer.rows;
  return std::max(ceil_div(checked_multiply(transfer.rows, streaming), all),
                  ceil_div(streaming * transfer.bits_per_cycle, rows->row_bits));
}

std::int64_t OffchipPort::cycles_with_rows(const PortTransfer& transfer,
                                           std::int64_t streaming) const {
  return streaming + row_overhead(*rows, rows_of_part(transfer, streaming), streaming);
}

std::int64_t OffchipPort::longest_part(const PortTransfer& transfer, std::int64_t length,
                                       std::int64_t limit) const {
  if (transfer.rows == 0)
    return std::min(length, limit);
  std::int64_t fits = 0;
  std::int64_t too_long = std::min(length, limit) + 1;
  while (too_long - fits > 1) {
    const std::int64_t middle = fits + (too_long - fits) / 2;
    (cycles_of_part(transfer, middle) <= length ? fits : too_long) = middle;
  }
  return fits;
}

WordAccess word_access(const Core& core, MemoryOperand operand, bool write) {
  const Memory* memory = core.top(operand);
  if (memory == nullptr)
    return {};
  const MemoryPort* port = port_of(*memory, operand, write ? Direction::fh : Direction::th);
  if (port == nullptr)
    port = port_of(*memory, operand, write ? Direction::fl : Direction::tl);
  return {port ? std::max<std::int64_t>(1, port->bandwidth_max)
               : std::numeric_limits<std::int64_t>::max(),
          write ? memory->write_energy_pj : memory->read_energy_pj};
}

} // namespace monet
