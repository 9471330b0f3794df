// The targets of fuzz_readers that are longer than a line.
#pragma once

#include <string_view>

namespace monet::fuzz {

/// Every reader of YAML but that of spaces.
void read_yaml(std::string_view text);
/// Expressions and counted items, as space files have them.
void read_space(std::string_view text);
/// A cluster file or a kernel table, and behind a line `---.` the file that it names.
void read_cluster_file(std::string_view text);
void read_kernel_file(std::string_view text);
/// What an experiment of a cluster says itself: `transformer`, `parallel`, and `space` of values.
void read_parallel(std::string_view text);
/// A line "FORMAT ROUNDING BLOCK SCALE_MODE", of which only the first is needed, and behind it an
/// array.
void quantise_array(std::string_view bytes);
/// Images of one file, or of the two that an input holds.
void read_cifar10(std::string_view bytes);
void read_idx(std::string_view bytes);
void read_npy_images(std::string_view bytes);
/// A network's step, in numbers.
void execute_network(std::string_view model);

} // namespace monet::fuzz
