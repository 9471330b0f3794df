// Reads and writes arrays in NumPy's .npy format, for data sets, checkpoints and results of
// execution.
#include "base/shared/npy.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/half.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <type_traits>

namespace monet {

static_assert(std::endian::native == std::endian::little, "arrays are little-endian");

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

class Reader {
public:
  Reader(std::string_view bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  NpyLayout layout() {
    const std::size_t begin = read_preamble();
    NpyLayout header = parse_header(bytes_.substr(begin, data_ - begin));
    header.data = data_;
    return header;
  }

  NpyArray read() {
    const NpyLayout header = layout();
    NpyArray array = convert(header);
    if (header.column_major && header.shape.size() > 1)
      to_row_major(array);
    return array;
  }

private:
  [[noreturn]] void fail(std::string_view what) const {
    throw InputError({origin_, 0, 0, ""}, fmt::format("not a .npy array: {}", what));
  }

  std::size_t byte(std::size_t i) const { return static_cast<unsigned char>(bytes_[i]); }

  /// Returns the start of the header's text and sets data_ to its end.
  std::size_t read_preamble() {
    if (bytes_.size() < 10 || bytes_.substr(0, kMagic.size()) != kMagic)
      fail("the file does not begin as one");
    const std::size_t version = byte(6);
    if (version < 1 || version > 3)
      fail(fmt::format("format version {} is not known", version));
    const std::size_t width = version == 1 ? 2 : 4;
    const std::size_t begin = 8 + width;
    if (bytes_.size() < begin)
      fail("the header is cut off");
    std::size_t length = 0;
    for (std::size_t i = 0; i < width; ++i)
      length |= byte(8 + i) << (8 * i);
    if (length > bytes_.size() - begin)
      fail("the header is cut off");
    data_ = begin + length;
    return begin;
  }

  /// Text after `'key':`, without leading blanks.
  std::string_view value_of(std::string_view text, std::string_view key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = fmt::format("{0}{1}{0}", quote, key);
      const std::size_t at = text.find(quoted);
      if (at == text.npos)
        continue;
      std::string_view rest = text.substr(at + quoted.size());
      const std::size_t start = rest.find_first_not_of(" :");
      if (start != rest.npos)
        return rest.substr(start);
    }
    fail(fmt::format("the header has no '{}'", key));
  }

  NpyLayout parse_header(std::string_view text) const {
    NpyLayout header;
    const std::string_view type = value_of(text, "descr");
    const std::size_t end = type.empty() ? type.npos : type.find(type[0], 1);
    if (end == type.npos || (type[0] != '\'' && type[0] != '"'))
      fail("its element type is not a plain one");
    header.type = type.substr(1, end - 1);
    if (header.type.starts_with('<') || header.type.starts_with('|') ||
        header.type.starts_with('='))
      header.type.erase(0, 1);
    header.column_major = value_of(text, "fortran_order").starts_with("True");
    std::string_view shape = value_of(text, "shape");
    const std::size_t close = shape.find(')');
    if (!shape.starts_with("(") || close == shape.npos)
      fail("its shape is not a tuple");
    shape = shape.substr(1, close - 1);
    while (true) {
      const std::size_t start = shape.find_first_not_of(" ,");
      if (start == shape.npos)
        break;
      shape.remove_prefix(start);
      std::int64_t size = 0;
      const auto [stop, error] = std::from_chars(shape.data(), shape.data() + shape.size(), size);
      if (error != std::errc{} || size < 0)
        fail("its shape is not a tuple of sizes");
      header.shape.push_back(size);
      shape.remove_prefix(static_cast<std::size_t>(stop - shape.data()));
    }
    return header;
  }

  template <class From, class To>
  std::vector<To> numbers(std::size_t count) const {
    if (bytes_.size() - data_ != count * sizeof(From))
      fail(fmt::format("{} bytes of data are expected, {} are there", count * sizeof(From),
                       bytes_.size() - data_));
    std::vector<To> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      From value;
      std::memcpy(&value, bytes_.data() + data_ + i * sizeof(From), sizeof(From));
      result[i] = static_cast<To>(value);
    }
    return result;
  }

  NpyArray convert(const NpyLayout& header) const {
    NpyArray array;
    array.shape = header.shape;
    std::int64_t elements = 0;
    try {
      elements = checked_product(header.shape);
    } catch (const InputError&) {
      fail("its shape overflows");
    }
    if (static_cast<std::uint64_t>(elements) > bytes_.size())
      fail("data are missing");
    const auto count = static_cast<std::size_t>(elements);
    const std::string_view type = header.type;
    array.is_real = type.starts_with("f");
    if (type == "f8")
      array.real = numbers<double, double>(count);
    else if (type == "f4")
      array.real = numbers<float, double>(count);
    else if (type == "f2")
      array.real = halves(numbers<std::uint16_t, std::uint16_t>(count));
    else if (type == "i8" || type == "u8")
      array.whole = numbers<std::int64_t, std::int64_t>(count);
    else if (type == "i4")
      array.whole = numbers<std::int32_t, std::int64_t>(count);
    else if (type == "u4")
      array.whole = numbers<std::uint32_t, std::int64_t>(count);
    else if (type == "i2")
      array.whole = numbers<std::int16_t, std::int64_t>(count);
    else if (type == "u2")
      array.whole = numbers<std::uint16_t, std::int64_t>(count);
    else if (type == "i1")
      array.whole = numbers<std::int8_t, std::int64_t>(count);
    else if (type == "u1" || type == "b1")
      array.whole = numbers<std::uint8_t, std::int64_t>(count);
    else
      fail(fmt::format("element type '{}' is not supported", header.type));
    return array;
  }

  static std::vector<double> halves(const std::vector<std::uint16_t>& words) {
    std::vector<double> result;
    result.reserve(words.size());
    for (const std::uint16_t word : words)
      result.push_back(half_to_double(word, 5));
    return result;
  }

  template <class T>
  static std::vector<T> transposed(const std::vector<T>& from,
                                   const std::vector<std::int64_t>& shape) {
    std::vector<T> to(from.size());
    std::vector<std::int64_t> place(shape.size(), 0);
    for (T& element : to) {
      std::int64_t at = 0;
      for (std::size_t d = shape.size(); d-- > 0;)
        at = at * shape[d] + place[d];
      element = from[static_cast<std::size_t>(at)];
      for (std::size_t d = shape.size(); d-- > 0;) {
        if (++place[d] < shape[d])
          break;
        place[d] = 0;
      }
    }
    return to;
  }
  static void to_row_major(NpyArray& array) {
    array.real = transposed(array.real, array.shape);
    array.whole = transposed(array.whole, array.shape);
  }

  std::string_view bytes_;
  std::string origin_;
  std::size_t data_ = 0; ///< end of the header
};

} // namespace

std::vector<double> NpyArray::numbers() const {
  return is_real ? real : std::vector<double>(whole.begin(), whole.end());
}

NpyLayout npy_layout(std::string_view bytes, const std::string& origin) {
  return Reader(bytes, origin).layout();
}

NpyArray parse_npy(std::string_view bytes, const std::string& origin) {
  return Reader(bytes, origin).read();
}

NpyArray read_npy(const std::string& path) {
  return parse_npy(read_file(path), path);
}

namespace {

template <class To>
void append_numbers(std::string& bytes, std::span<const double> numbers) {
  if constexpr (std::is_same_v<To, double>) {
    bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    return;
  }
  std::vector<To> converted;
  converted.reserve(numbers.size());
  for (const double number : numbers)
    converted.push_back(static_cast<To>(number));
  bytes.append(reinterpret_cast<const char*>(converted.data()), converted.size() * sizeof(To));
}

struct WrittenType {
  std::string_view name;
  void (*append)(std::string& bytes, std::span<const double> numbers);
};

/// Type names and writers, indexed by NpyType.
constexpr std::array kWrittenTypes{WrittenType{"<f8", &append_numbers<double>},
                                   WrittenType{"<f4", &append_numbers<float>},
                                   WrittenType{"|u1", &append_numbers<std::uint8_t>},
                                   WrittenType{"<u2", &append_numbers<std::uint16_t>},
                                   WrittenType{"<u4", &append_numbers<std::uint32_t>}};

} // namespace

std::string npy_bytes(std::span<const std::int64_t> shape, std::span<const double> numbers,
                      NpyType type) {
  const WrittenType& written = kWrittenTypes.at(static_cast<std::size_t>(type));
  const std::string sizes = // formatted as NumPy does, so that equal arrays yield equal files
      fmt::format("{}{}", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   written.name, sizes);
  constexpr std::size_t kPreamble = 10;
  header.append((64 - (kPreamble + header.size() + 1) % 64) % 64, ' '); // aligns data to 64 bytes
  header += '\n';
  std::string bytes(kMagic);
  bytes += std::string("\x01\x00", 2);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  written.append(bytes, numbers);
  return bytes;
}

} // namespace monet
