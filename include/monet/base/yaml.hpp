// YAML with locations. yaml-cpp keeps the first of duplicate keys, reads 010 as octal and knows no
// unknown keys; this wrapper is what every reader of a user's YAML uses instead.
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

/// A parsed document as plain data. Aliases are expanded (bounded, see parse_yaml).
struct YamlNode {
  enum class Kind { null, scalar, sequence, map };
  struct Entry;

  Kind kind = Kind::null;
  bool quoted = false; ///< a quoted scalar is always a string
  std::string scalar;
  std::vector<YamlNode> items; ///< of a sequence
  std::vector<Entry> entries;  ///< of a map, in file order; duplicates are kept
  SourceLoc where;
};
struct YamlNode::Entry {
  std::string key;
  SourceLoc key_where;
  YamlNode value;
};

/// Parses one document. Throws a located InputError on bad syntax, several documents, control
/// bytes, foreign tags, anything but UTF-8, more than 1,000,000 nodes after alias expansion or
/// nesting deeper than 64.
YamlNode parse_yaml(std::string_view text, const std::string& origin);
YamlNode load_yaml(const std::string& path);

/// Typed reading of one map; collects problems instead of stopping at the first.
/// Every key must be asked for: finish() reports the others, with the nearest known name as a hint.
class YamlMap {
public:
  enum class Duplicates { are_errors, last_wins }; ///< last_wins is what ZigZag's reader does

  /// Not a map: reported, and then reads as an empty map.
  YamlMap(const YamlNode& node, ProblemList& problems,
          Duplicates duplicates = Duplicates::are_errors);

  bool has(std::string_view key) const;
  /// The value or null; marks the key as known.
  const YamlNode* find(std::string_view key);
  /// Like find, but a missing key is reported.
  const YamlNode* require(std::string_view key);

  std::int64_t require_integer(std::string_view key, std::int64_t fallback = 0);
  double require_number(std::string_view key, double fallback = 0);
  std::string require_string(std::string_view key);
  std::int64_t integer_or(std::string_view key, std::int64_t fallback);
  double number_or(std::string_view key, double fallback);
  bool boolean_or(std::string_view key, bool fallback);
  std::string string_or(std::string_view key, const std::string& fallback);
  /// Known but unused keys of a foreign format.
  void ignore(std::string_view key);

  void finish();
  const YamlNode& node() const { return *node_; }

private:
  const YamlNode* node_;
  ProblemList* problems_;
  std::vector<std::string> known_;
};

/// A number of a map between both limits; the fallback where the key is missing and there is one. A
/// problem, and 1, where it is not that.
double figure_within(YamlMap& map, std::string_view key, double least, double most,
                     std::optional<double> fallback, ProblemList& problems);

/// Scalars: decimal integers with optional `_` between digits (as YAML 1.1; never octal), `1e9`
/// counts as an integer when integral. nullopt and a located problem when the node is something
/// else.
std::optional<std::int64_t> as_integer(const YamlNode& node, ProblemList& problems);
/// The same between both limits; a problem about `what` for others. `unit` follows the limits.
std::optional<std::int64_t> integer_within(const YamlNode& node, std::string_view what,
                                           std::int64_t least, std::int64_t most,
                                           ProblemList& problems, std::string_view unit = "");
std::optional<double> as_number(const YamlNode& node, ProblemList& problems);
std::optional<bool> as_boolean(const YamlNode& node, ProblemList& problems);
std::optional<std::string> as_string(const YamlNode& node, ProblemList& problems);
/// A sequence of strings; nothing counts as an empty one, a scalar as a sequence of one when
/// `scalar_ok`.
std::vector<std::string> as_strings(const YamlNode& node, ProblemList& problems,
                                    bool scalar_ok = false);
std::vector<std::int64_t> as_integers(const YamlNode& node, ProblemList& problems);

} // namespace monet
