// YAML -> Core and Chip. Both memory schemas (named ports; r_bw/w_bw with port counts) and both
// link styles are read as they stand; docs/reference/hardware.md and system-file.md describe every
// key.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/hardware/tile_waves.hpp"

#include <functional>
#include <string>

namespace monet {

/// A ZigZag core file. One InputError with every problem found.
Core read_core(const std::string& path);
Core parse_core(std::string_view text, const std::string& origin);

/// A Stream system file, or a single core file: then a chip of that one core, whose outermost
/// memory becomes the off-chip memory when it holds all operands and its name begins with "dram" or
/// "offchip". A core file named with a folder is looked for there (seen from the system file), then
/// all are by file name in `cores/`, beside it, and in `../cores/`.
Chip read_chip(const std::string& path);
/// The path of a core file that a system file names; InputError, at `where`, when there is none.
std::string find_core_file(const std::string& system, const std::string& name,
                           const SourceLoc& where);

/// Finds and opens a core file named in a system file: its path and text. Throws InputError when
/// there is none.
struct FileText {
  std::string path;
  std::string text;
};
using FileOpener = std::function<FileText(const std::string& name, const SourceLoc& where)>;
/// The same from text; core files come through `open`.
Chip parse_chip(std::string_view text, const std::string& origin, const FileOpener& open);
/// The same from a parsed system file, whose core files are parsed already, too. Each is asked for
/// once, and must stay where it is until the chip is made.
using NodeOpener = std::function<const YamlNode&(const std::string& name, const SourceLoc& where)>;
Chip make_chip(const YamlNode& system, const std::string& origin, const NodeOpener& open);

/// A list of [rows, columns, share] -> TileWaves::tiles.
void read_tile_shapes(const YamlNode& node, TileWaves& waves, ProblemList& problems);

} // namespace monet
