// Bytes of small image files, as the tests write them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace monet::test {

/// Bytes from numbers.
std::string bytes_of(std::initializer_list<int> numbers);

/// A record of CIFAR-10 in which byte i is (first + i) modulo 256.
std::string cifar_record(int label, int first);

/// Two zeros, the type, the dimensions in big-endian order, the data.
std::string idx_file(int type, std::initializer_list<std::uint32_t> dimensions,
                     std::string_view data);

/// As NumPy writes it; `shape` like "(2, 3), ".
std::string npy_file(std::string_view type, std::string_view shape, std::string_view data,
                     bool column_major = false);

/// what() of the InputError that is thrown, or "no error".
std::string error_of(const std::function<void()>& read);

} // namespace monet::test
