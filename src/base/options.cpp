// Reads options of a struct from a map of a file (monet/base/options.hpp).
#include "monet/base/options.hpp"

#include "base/shared/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

/// Reads the value of one option from its node. Returns whether the value is valid; if not, the
/// problem has been reported.
class ValueReader {
public:
  ValueReader(const YamlNode& node, const BoundOption& option, ProblemList& problems)
      : node_(node), option_(option), problems_(problems) {}

  bool operator()(bool* value) const { return assign(as_boolean(node_, problems_), *value); }
  bool operator()(std::string* value) const {
    const auto text = as_string(node_, problems_);
    const auto problem = option_.details.problem;
    if (const std::string why = text && problem != nullptr ? problem(*text) : ""; !why.empty())
      problems_.add(node_.where, why);
    return assign(text, *value);
  }
  bool operator()(const NamedValue& value) const {
    const auto name = as_string(node_, problems_);
    if (!name || value.assign(*name))
      return name.has_value();
    return report(*name, value.names());
  }
  bool operator()(std::vector<std::string>* value) const {
    *value = as_strings(node_, problems_, true);
    const std::vector<std::string>* names = option_.details.names;
    return names == nullptr || std::ranges::all_of(*value, [&](const std::string& item) {
             return std::ranges::find(*names, item) != names->end() || report(item, *names);
           });
  }
  template <class Number>
  bool operator()(std::vector<Number>* value) const {
    const std::vector<std::int64_t> numbers = as_integers(node_, problems_);
    value->assign(numbers.begin(), numbers.end());
    return true;
  }
  bool operator()(double* value) const {
    return assign_in_range(as_number(node_, problems_), *value);
  }
  template <class Integer>
  bool operator()(Integer* value) const {
    if (option_.details.zero_is_none && node_.scalar == "none") {
      *value = 0;
      return true;
    }
    return assign_in_range(as_integer(node_, problems_), *value);
  }

private:
  /// Reports an unknown name; returns false.
  bool report(const std::string& name, const std::vector<std::string>& known) const {
    problems_.add(node_.where, fmt::format("unknown {} '{}'", option_.key, name),
                  nearest_name_hint(name, known));
    return false;
  }

  static bool assign(const auto& given, auto& value) {
    if (given)
      value = *given;
    return given.has_value();
  }

  template <class Number, class Value>
  bool assign_in_range(const std::optional<Number>& given, Value& value) const {
    if (!given)
      return false;
    const bool is_unsigned = std::is_same_v<Value, std::uint64_t>;
    const double least = is_unsigned ? 0 : -std::numeric_limits<double>::infinity();
    const NumberRange range = option_.details.range.value_or(NumberRange{least});
    const auto number = static_cast<double>(*given);
    if (number >= range.least && number <= range.most) {
      if constexpr (std::is_arithmetic_v<Value>)
        value = static_cast<Value>(*given);
      else
        value = static_cast<typename Value::value_type>(*given);
      return true;
    }
    const char* form = option_.details.zero_is_none ? "{0} must be {2} to {3}, or none"
                       : std::isinf(range.most)     ? "'{0}' is {1}, below {2}"
                                                    : "'{0}' is {1}, outside [{2}, {3}]";
    problems_.add(node_.where,
                  fmt::format(fmt::runtime(form), option_.key, *given, range.least, range.most));
    return false;
  }

  const YamlNode& node_;
  const BoundOption& option_;
  ProblemList& problems_;
};

} // namespace

bool NamedValue::assign(std::string_view name) const {
  const std::vector<std::string> known = names();
  const auto found = std::ranges::find(known, name);
  if (found != known.end())
    set(value, static_cast<std::size_t>(found - known.begin()));
  return found != known.end();
}

std::string BoundOption::name() const {
  if (!details.option.empty())
    return std::string(details.option);
  std::string name = "--" + std::string(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

void read_options(YamlMap& map, const std::vector<BoundOption>& options, ProblemList& problems) {
  for (const BoundOption& option : options) {
    if (option.details.place == OptionPlace::command)
      continue;
    const YamlNode* node = option.details.required ? map.require(option.key) : map.find(option.key);
    if (node != nullptr && std::visit(ValueReader(*node, option, problems), option.value) &&
        option.after)
      option.after();
  }
}

} // namespace monet
