// What a space file says beyond its parameters, ready to be evaluated for a design.
#pragma once

#include "explore/space/expression.hpp"
#include "explore/space/yaml_template.hpp"

#include "monet/cluster/device.hpp"
#include "monet/explore/space.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace monet {

struct Space::Template {
  struct Derived {
    std::string name;
    Expression value;
  };
  /// A core: written in the space, or one of the files that its path may name.
  struct CoreTemplate {
    YamlTemplate core; ///< where it is written; else the path
    bool is_path = false;
    std::map<std::string, YamlTemplate> files{}; ///< by path, as the space says it
  };
  /// A system file, with the core files that it names.
  struct SystemFile {
    std::string path; ///< as it is opened
    YamlNode root;
    std::map<std::string, YamlNode> cores{}; ///< by name, as the system file says it
  };
  /// A section that decides what is run or trained, as it is or with expressions.
  struct VariedSection {
    YamlNode fixed;
    std::optional<SectionTemplate> varied{};
    YamlNode of(const Values& values) const { return varied ? varied->expand(values) : fixed; }
    void add_slots(std::set<std::size_t>& slots) const {
      if (varied)
        varied->add_slots(slots);
    }
  };

  /// `cluster:` and `parallel:` of a space of clusters.
  struct ClusterTemplate {
    YamlTemplate cluster; ///< the path of a cluster file; or a map, which may have it as `file`
    std::map<std::string, YamlNode> files{}; ///< by path, as the space says it
    VariedSection parallel{};
    bool has_own_chip = false;     ///< the devices are what `chip:` says
    std::set<std::size_t> slots{}; ///< what all depends on but `parallel:`

    /// The cluster file, with the keys of the space in place of its own, and those that it has not:
    /// `devices` where there is a file, and figures of the kernel table.
    struct ClusterSections {
      YamlNode file;
      std::optional<YamlNode> devices{};
      std::vector<std::pair<TableFigure, YamlNode>> figures{};
    };
    ClusterSections said(const Space& space, const Values& values) const;
  };

  std::vector<Derived> derived; ///< `let:`, in order; slots follow those of the parameters
  std::vector<Expression> constraints;
  YamlTemplate system; ///< `chip:`, a system file whose cores are a list; or the path of one
  bool system_is_path = false;
  std::map<std::string, SystemFile> systems; ///< by path, as the space says it
  std::map<std::string, CoreTemplate, std::less<>> cores;
  VariedSection training;
  std::optional<VariedSection> accuracy;
  std::optional<ClusterTemplate> clusters; ///< none: designs are chips
  VariedSection workload; ///< its network and batch are those of a short training, too

  /// Of the parameters and what is derived of them.
  Values values(const Space& space, DesignId id) const;
  /// Values of one design for every way in which what these slots hold may differ, other slots 0;
  /// empty: more than `most` of them. InputError where something derived has no value.
  std::vector<Values> ways(const Space& space, std::set<std::size_t> slots, std::size_t most) const;
  /// The system file: named, and with cores by id. Of a `chip:` that is written in the space.
  YamlNode system_file(const Space& space, DesignId id, const Values& values) const;
  /// The file that `chip:` names.
  const SystemFile& chosen_system(const Values& values) const;
  /// The recipe of a short training, as `monet train` reads it. `accuracy` is there.
  YamlNode recipe(const Values& values) const;
};

} // namespace monet
