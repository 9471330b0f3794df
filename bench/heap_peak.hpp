// Heap in use, counted by replacements of operator new and delete (heap_peak.cpp).
#pragma once

#include <cstddef>

namespace monet::bench {

/// Bytes allocated and not yet freed, as the allocator rounds them.
std::size_t heap_in_use();
/// The most of it since the last reset_heap_peak().
std::size_t heap_peak();
void reset_heap_peak();

} // namespace monet::bench
