// Arrays of numbers in NumPy's .npy format (NEP 1; versions 1.0 to 3.0), little-endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// An array in row-major order. Floats of 2, 4 and 8 bytes are `real`; integers of 1 to 8 bytes and
/// booleans are `whole`. Unsigned 64-bit numbers above 2^63 - 1 wrap.
struct NpyArray {
  std::vector<std::int64_t> shape; ///< empty = a single number
  bool is_real = true;
  std::vector<double> real;
  std::vector<std::int64_t> whole;

  std::size_t size() const { return is_real ? real.size() : whole.size(); }
  /// All numbers as double.
  std::vector<double> numbers() const;
};

/// What a file says of its array before its elements.
struct NpyLayout {
  std::string type; ///< as NumPy names it: "f4", "u1"; ">f4" is big-endian
  bool column_major = false;
  std::vector<std::int64_t> shape; ///< not held against the size of the file
  std::size_t data = 0;            ///< byte at which the elements begin
};

/// InputError naming `origin` where the file does not begin as such an array.
NpyLayout npy_layout(std::string_view bytes, const std::string& origin);

/// InputError naming `origin` for anything else than such an array; its data must be complete.
NpyArray parse_npy(std::string_view bytes, const std::string& origin);
NpyArray read_npy(const std::string& path);

/// Element types that files are written in: floats of 8 and 4 bytes, unsigned integers.
enum class NpyType { f8, f4, u1, u2, u4 };

/// The bytes of a file of these numbers, each converted to the type, which has room for it.
std::string npy_bytes(std::span<const std::int64_t> shape, std::span<const double> numbers,
                      NpyType type = NpyType::f8);

} // namespace monet
