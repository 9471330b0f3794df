// YAML with source locations, for every YAML file of a user. Unlike plain yaml-cpp, it reports
// duplicate and unknown keys and never reads 010 as octal.
// Example:
//   std::int64_t read_batch(const YamlNode& node, ProblemList& problems) {
//     YamlMap map(node, problems);
//     const std::int64_t batch = map.integer_or("batch", 1);
//     map.finish(); // reports all other keys as unknown
//     return batch;
//   }
#pragma once

#include "monet/base/errors.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

/// A parsed document as plain data. Aliases are expanded, within the limits of parse_yaml().
struct YamlNode {
  enum class Kind { null, scalar, sequence, map };
  struct Entry;

  Kind kind = Kind::null;
  bool quoted = false; ///< a quoted scalar is always a string
  std::string scalar;
  std::vector<YamlNode> items; ///< items of a sequence
  std::vector<Entry> entries;  ///< entries of a map, in file order, with duplicates
  SourceLoc where;
};
struct YamlNode::Entry {
  std::string key;
  SourceLoc key_where;
  YamlNode value;
};

/// Parses one document. Throws InputError with a location for: bad syntax, several documents,
/// control bytes, foreign tags, anything but UTF-8, more than 1,000,000 nodes after alias
/// expansion, or nesting deeper than 64.
YamlNode parse_yaml(std::string_view text, const std::string& origin);
YamlNode load_yaml(const std::string& path);

/// Typed access to one map, which collects problems instead of stopping at the first. finish()
/// reports every key that was never requested, with the nearest known name as a hint.
class YamlMap {
public:
  enum class Duplicates { are_errors, last_wins }; ///< last_wins is the rule of ZigZag's reader

  /// A node that is not a map is reported, and then reads as an empty map.
  YamlMap(const YamlNode& node, ProblemList& problems,
          Duplicates duplicates = Duplicates::are_errors);

  bool has(std::string_view key) const;
  /// Value of a key, or null if it is missing; marks the key as known.
  const YamlNode* find(std::string_view key);
  /// Value of a key, or null if it is missing, which is reported; marks the key as known.
  const YamlNode* require(std::string_view key);

  std::int64_t require_integer(std::string_view key, std::int64_t fallback = 0);
  double require_number(std::string_view key, double fallback = 0);
  std::string require_string(std::string_view key);
  std::int64_t integer_or(std::string_view key, std::int64_t fallback);
  double number_or(std::string_view key, double fallback);
  bool boolean_or(std::string_view key, bool fallback);
  std::string string_or(std::string_view key, const std::string& fallback);
  /// Marks a key of a foreign format as known although it is not used.
  void ignore(std::string_view key);

  void finish();
  const YamlNode& node() const { return *node_; }

private:
  const YamlNode* node_;
  ProblemList* problems_;
  std::vector<std::string> known_;
};

/// Number at `key` between `least` and `most`. A missing key yields the fallback if there is one.
/// Anything else adds a problem and yields 1.
double figure_within(YamlMap& map, std::string_view key, double least, double most,
                     std::optional<double> fallback, ProblemList& problems);

/// Integer value of a scalar: decimal, with optional `_` between digits (as in YAML 1.1; never
/// octal). `1e9` is an integer because its value is integral. Any other node adds a problem with
/// its location and yields nullopt.
std::optional<std::int64_t> as_integer(const YamlNode& node, ProblemList& problems);
/// Integer value of a scalar between `least` and `most`. Any other value adds a problem that names
/// `what` and the limits in `unit`, and yields nullopt.
std::optional<std::int64_t> integer_within(const YamlNode& node, std::string_view what,
                                           std::int64_t least, std::int64_t most,
                                           ProblemList& problems, std::string_view unit = "");
std::optional<double> as_number(const YamlNode& node, ProblemList& problems);
std::optional<bool> as_boolean(const YamlNode& node, ProblemList& problems);
std::optional<std::string> as_string(const YamlNode& node, ProblemList& problems);
/// Strings of a sequence. An empty node yields an empty list; a scalar is accepted as one string if
/// `scalar_ok`.
std::vector<std::string> as_strings(const YamlNode& node, ProblemList& problems,
                                    bool scalar_ok = false);
std::vector<std::int64_t> as_integers(const YamlNode& node, ProblemList& problems);

} // namespace monet
