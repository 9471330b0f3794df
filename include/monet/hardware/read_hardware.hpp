// Readers of core and chip files (YAML). They accept both memory schemas (named ports; r_bw/w_bw
// with port counts) and both link styles. docs/reference/hardware.md and system-file.md describe
// every key.
// Example:
//   double edge_tpu_peak_power_w() {
//     const Chip chip = read_chip("data/hardware/edge_tpu.yaml");
//     return peak_power_w(chip).value_or(0); // 0 without a frequency
//   }
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/hardware/core.hpp"

#include <functional>
#include <string>

namespace monet {

/// Reads a ZigZag core file. Throws one InputError with every problem found.
Core read_core(const std::string& path);
/// Parses the text of a ZigZag core file; `origin` names it in messages. Errors as read_core().
Core parse_core(std::string_view text, const std::string& origin);

/// Reads a Stream system file, or a core file as a chip of a single core. The outermost memory of a
/// single core becomes the off-chip memory if it holds all operands and its name begins with "dram"
/// or "offchip". A core file whose name includes a folder is searched there first, relative to the
/// system file. Then core files are searched by file name in `cores/`, in the system file's folder,
/// and in `../cores/`. Throws one InputError with every problem found.
Chip read_chip(const std::string& path);
/// Path of a core file that a system file names. Throws InputError at `where` if it is not found.
std::string find_core_file(const std::string& system, const std::string& name,
                           const SourceLoc& where);

/// Path and text of a file.
struct FileText {
  std::string path;
  std::string text;
};
/// Function that finds and reads a file by its name in another file, such as a core file by its
/// name in a system file. Throws InputError if it is not found.
using FileOpener = std::function<FileText(const std::string& name, const SourceLoc& where)>;
/// Parses the text of a system file; core files are read through `open`. Errors as read_chip().
Chip parse_chip(std::string_view text, const std::string& origin, const FileOpener& open);
/// Function that returns a parsed core file named in a system file. It is called once per file; the
/// node must stay valid until the chip is built.
using NodeOpener = std::function<const YamlNode&(const std::string& name, const SourceLoc& where)>;
/// Builds a chip from a parsed system file and parsed core files. Errors as read_chip().
Chip make_chip(const YamlNode& system, const std::string& origin, const NodeOpener& open);

/// Reads a list of [rows, columns, share] into TileWaves::tiles.
void read_tile_shapes(const YamlNode& node, TileWaves& waves, ProblemList& problems);

} // namespace monet
