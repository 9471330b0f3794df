// What a space file says beyond its parameters, ready to be evaluated for a design.
#pragma once

#include "explore/space/expression.hpp"
#include "explore/space/yaml_template.hpp"

#include "monet/explore/space.hpp"

#include <map>
#include <string>
#include <vector>

namespace monet {

struct Space::Template {
  struct Derived {
    std::string name;
    Expression value;
  };
  std::vector<Derived> derived; ///< `let:`, in order; slots follow those of the parameters
  std::vector<Expression> constraints;
  YamlTemplate system; ///< `chip:`, a system file whose cores are a list
  std::map<std::string, YamlTemplate, std::less<>> cores;

  /// Of the parameters and what is derived of them.
  Values values(const Space& space, DesignId id) const;
  /// The system file: named, and with cores by id.
  YamlNode system_file(const Space& space, DesignId id, const Values& values) const;
};

} // namespace monet
