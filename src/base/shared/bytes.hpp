// Values as bytes and back, between programs that are the same on machines of one kind.
#pragma once

#include "monet/base/errors.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace monet {

/// Numbers as they lie in memory, texts and lists with their lengths before them: of values written
/// by the same code no two different ones give the same bytes.
class ByteWriter {
public:
  /// Numbers, flags and enumerators, one after another.
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

/// The same calls read what a ByteWriter wrote. InternalError where bytes are missing.
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
    need(size); // at least a byte each
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

  std::string_view bytes_; ///< not read yet
};

} // namespace monet
