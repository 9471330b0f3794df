// Serialises values to bytes and back, between equal programs on machines of one kind.
#pragma once

#include "monet/base/errors.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace monet {

/// Writes numbers as they lie in memory, and strings and lists after their lengths. Different
/// values that the same code writes never yield equal bytes.
class ByteWriter {
public:
  /// Writes numbers, flags and enumerators, one after another.
  template <class... Number>
  void number(Number... values) {
    static_assert(((std::is_arithmetic_v<Number> || std::is_enum_v<Number>)&&...));
    (bytes_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  }
  void text(std::string_view value) {
    number(std::uint64_t{value.size()});
    bytes_.append(value);
  }
  template <class List, class WriteItem>
  void list(const List& items, const WriteItem& write_item) {
    number(std::uint64_t{items.size()});
    for (const auto& item : items)
      write_item(item);
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// Reads what a ByteWriter wrote, by the same sequence of calls. Throws InternalError if bytes are
/// missing.
class ByteReader {
public:
  /// Keeps a reference to the bytes.
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class... Number>
  void number(Number&... values) {
    (std::memcpy(&values, next(sizeof values), sizeof values), ...);
  }
  void text(std::string& value) {
    std::uint64_t size = 0;
    number(size);
    value.assign(next(size), size);
  }
  template <class List, class ReadItem>
  void list(List& items, const ReadItem& read_item) {
    std::uint64_t size = 0;
    number(size);
    need(size); // each item has at least one byte
    items.resize(size);
    for (auto& item : items)
      read_item(item);
  }

private:
  void need(std::uint64_t size) const {
    internal_check(size <= bytes_.size(), "bytes end before what they should hold");
  }
  const char* next(std::uint64_t size) {
    need(size);
    const char* const at = bytes_.data();
    bytes_.remove_prefix(size);
    return at;
  }

  std::string_view bytes_; ///< remaining bytes
};

} // namespace monet
