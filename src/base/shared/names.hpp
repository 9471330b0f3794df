// Tables of values and their names, for lookup in both directions.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace monet {

template <class T>
struct Named {
  std::string_view name;
  T value;
};

template <class T, std::size_t kCount>
constexpr std::optional<T> value_named(const std::array<Named<T>, kCount>& table,
                                       std::string_view name) {
  for (const Named<T>& known : table) {
    if (known.name == name)
      return known.value;
  }
  return std::nullopt;
}

/// First name of the value; empty if it has no name.
template <class T, std::size_t kCount>
constexpr std::string_view name_in(const std::array<Named<T>, kCount>& table, const T& value) {
  for (const Named<T>& known : table) {
    if (known.value == value)
      return known.name;
  }
  return {};
}

} // namespace monet
