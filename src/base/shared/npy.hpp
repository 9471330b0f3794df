// Arrays of numbers in NumPy's .npy format (NEP 1; versions 1.0 to 3.0), little-endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// An array in row-major order. Floats of 2, 4 and 8 bytes are stored in `real`; integers of 1 to 8
/// bytes and booleans in `whole`. Unsigned 64-bit numbers above 2^63 - 1 wrap around.
struct NpyArray {
  std::vector<std::int64_t> shape; ///< empty for a single number
  bool is_real = true;
  std::vector<double> real;
  std::vector<std::int64_t> whole;

  std::size_t size() const { return is_real ? real.size() : whole.size(); }
  /// All numbers as double.
  std::vector<double> numbers() const;
};

/// Header of a .npy file: element type, order and shape of its array.
struct NpyLayout {
  std::string type; ///< NumPy's name: "f4", "u1"; ">f4" is big-endian
  bool column_major = false;
  std::vector<std::int64_t> shape; ///< not checked against the size of the file
  std::size_t data = 0;            ///< offset of the first element, in bytes
};

/// Parses the header of a .npy file. Throws InputError naming `origin` if it is invalid.
NpyLayout npy_layout(std::string_view bytes, const std::string& origin);

/// Parses a whole .npy file. Throws InputError naming `origin` if the format is not supported or
/// data are missing.
NpyArray parse_npy(std::string_view bytes, const std::string& origin);
NpyArray read_npy(const std::string& path);

/// Element types that can be written: floats of 8 and 4 bytes and unsigned integers.
enum class NpyType { f8, f4, u1, u2, u4 };

/// Contents of a .npy file with these numbers, each converted to `type`; every number must be in
/// its range.
std::string npy_bytes(std::span<const std::int64_t> shape, std::span<const double> numbers,
                      NpyType type = NpyType::f8);

} // namespace monet
