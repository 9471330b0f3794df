// Options of a struct as a table with one row for each. Readers of files, JSON Schemas, command
// lines, Python arguments and reference pages follow from the table.
// Example:
//   struct Limits {
//     std::int64_t rounds = 2;
//   };
//   inline constexpr OptionRow<Limits> kLimitOptions[] = {
//       {"rounds", option_field<&Limits::rounds>, "Number of rounds", {.range = NumberRange{1,
//       100}}}};
//   Limits read_limits(YamlMap& map, ProblemList& problems) {
//     Limits limits;
//     read_options(map, bind(kLimitOptions, limits), problems);
//     return limits;
//   }
#pragma once

#include "monet/base/yaml.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace monet {

/// A value with its name in files and on the command line.
template <class Value>
struct NamedChoice {
  std::string_view name;
  Value value;
};

/// Variable that has one of several named values, such as an enumeration.
struct NamedValue {
  void* value = nullptr;
  std::vector<std::string> (*names)() = nullptr;
  std::size_t (*index)(const void* value) = nullptr; ///< of the value among the names
  void (*set)(void* value, std::size_t index) = nullptr;

  std::string name() const { return names().at(index(value)); }
  /// Sets the value with this name; returns false if the name is unknown.
  bool assign(std::string_view name) const;
};

/// Variable that holds the value of an option; a bool is a flag on the command line.
using OptionValue =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                 std::optional<int>*, std::optional<std::int64_t>*, std::vector<std::int64_t>*,
                 std::vector<std::uint64_t>*, std::vector<std::string>*, NamedValue>;

/// Range of allowed numbers, both ends included.
struct NumberRange {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
};

/// Places where an option may be set.
enum class OptionPlace { everywhere, command, file };

/// Further properties of an option.
struct OptionDetails {
  OptionPlace place = OptionPlace::everywhere;
  std::optional<NumberRange> range;
  std::string_view type;      ///< form or unit of the value; empty: from the type of the member
  std::string_view option;    ///< name on the command line; empty: "--" and the key
  bool hides_default = false; ///< whether the member's default is not what a missing option means
  bool required = false;      ///< in files
  bool repeated = false;      ///< whether a list receives one value per use
  const std::vector<std::string>* names = nullptr; ///< allowed items of a list; null: any
  bool zero_is_none = false; ///< whether "none" is allowed and means 0, which is outside the range
  /// Returns what is wrong with a text in a file; empty if it is valid. May be null.
  std::string (*problem)(const std::string& text) = nullptr;
};

/// An option of a struct.
template <class Struct>
struct OptionRow {
  std::string_view key; ///< in files and as an argument in Python
  OptionValue (*at)(Struct& object);
  std::string_view text; ///< meaning, in one line of --help
  OptionDetails details;
  void (*after)(Struct& object) = nullptr; ///< called after the option has been set
};

/// An option of an object.
struct BoundOption {
  std::string_view key;
  OptionValue value;
  std::string_view text;
  OptionDetails details;
  std::function<void()> after; ///< may be empty

  /// Name on the command line: "--time-limit" for the key `time_limit`.
  std::string name() const;
};

/// Options of an object, which must outlive them.
template <class Struct, std::size_t kRows>
std::vector<BoundOption> bind(const OptionRow<Struct> (&rows)[kRows],
                              std::type_identity_t<Struct>& object) {
  std::vector<BoundOption> bound;
  for (const OptionRow<Struct>& row : rows) {
    BoundOption& option =
        bound.emplace_back(BoundOption{row.key, row.at(object), row.text, row.details, {}});
    if (row.after != nullptr)
      option.after = [after = row.after, &object] { after(object); };
  }
  return bound;
}

/// Reads the options that a map has and that may be set in files. A value of another type or
/// outside its range is reported and leaves the option unchanged.
void read_options(YamlMap& map, const std::vector<BoundOption>& options, ProblemList& problems);

namespace detail {

template <auto kFirst, auto... kRest>
constexpr auto& member(auto& object) {
  if constexpr (sizeof...(kRest) == 0)
    return object.*kFirst;
  else
    return member<kRest...>(object.*kFirst);
}

template <class Value>
constexpr const Value& value_of(const Value& value) {
  return value;
}
template <class Value>
constexpr const Value& value_of(const NamedChoice<Value>& choice) {
  return choice.value;
}
template <class Value>
std::string name_in_list(const Value& value) {
  if constexpr (std::is_convertible_v<Value, std::string_view>)
    return std::string(value);
  else
    return std::string(name_of(value));
}
template <class Value>
std::string name_in_list(const NamedChoice<Value>& choice) {
  return std::string(choice.name);
}

} // namespace detail

/// A variable with one of the values of a list: values that name_of() names, texts, or NamedChoice.
template <const auto& kValues, class Value>
NamedValue named_value(Value& value) {
  NamedValue result;
  result.value = &value;
  result.names = [] {
    std::vector<std::string> names;
    for (const auto& one : kValues)
      names.push_back(detail::name_in_list(one));
    return names;
  };
  result.index = [](const void* at) {
    std::size_t index = 0;
    for (const auto& one : kValues) {
      if (*static_cast<const Value*>(at) == detail::value_of(one))
        break;
      ++index;
    }
    return index;
  };
  result.set = [](void* at, std::size_t index) {
    *static_cast<Value*>(at) = Value(detail::value_of(kValues[index]));
  };
  return result;
}

/// Accessor of a member, or of a member of a member, for OptionRow.
template <auto... kPath>
inline constexpr auto option_field =
    [](auto& object) -> OptionValue { return &detail::member<kPath...>(object); };

/// Accessor of a member that has one of the values of a list, see named_value().
template <const auto& kValues, auto... kPath>
inline constexpr auto option_choice = [](auto& object) -> OptionValue {
  return named_value<kValues>(detail::member<kPath...>(object));
};

} // namespace monet
