// The parsed sections of a space file, ready to be evaluated for a design.
#pragma once

#include "explore/space/expression.hpp"
#include "explore/space/yaml_template.hpp"

#include "monet/cluster/kernel_table.hpp"
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
  /// A core, written in the space file or in one of the files that a path may name.
  struct CoreTemplate {
    YamlTemplate core; ///< the core, or its path if is_path
    bool is_path = false;
    std::map<std::string, YamlTemplate> files{}; ///< by path as written in the space
  };
  /// A system file and the core files that it names.
  struct SystemFile {
    std::string path; ///< resolved path
    YamlNode root;
    std::map<std::string, YamlNode> cores{}; ///< by name as written in the system file
  };
  /// A section that configures a run or training; it may contain expressions.
  struct VariedSection {
    YamlNode fixed;
    std::optional<SectionTemplate> varied{};
    YamlNode of(const Values& values) const { return varied ? varied->expand(values) : fixed; }
    void add_slots(std::set<std::size_t>& slots) const {
      if (varied)
        varied->add_slots(slots);
    }
  };

  /// The sections `cluster:` and `parallel:` of a space of clusters.
  struct ClusterTemplate {
    YamlTemplate cluster; ///< path of a cluster file, or a map, which may name it as `file`
    std::map<std::string, YamlNode> files{}; ///< by path as written in the space
    VariedSection parallel{};
    bool has_own_chip = false;     ///< the devices are chips defined by `chip:`
    std::set<std::size_t> slots{}; ///< slots used by all sections except `parallel:`

    /// The sections for one design. `file` is the cluster file with keys replaced by those of the
    /// space. Keys outside cluster files are separate: `devices` next to a file, and table figures.
    struct ClusterSections {
      YamlNode file;
      std::optional<YamlNode> devices{};
      std::vector<std::pair<TableFigure, YamlNode>> figures{};
    };
    ClusterSections said(const Space& space, const Values& values) const;
  };

  std::vector<Derived> derived; ///< `let:`, in order; slots follow those of the parameters
  std::vector<Expression> constraints;
  YamlTemplate system; ///< `chip:`: a system whose cores are a list, or the path of a system file
  bool system_is_path = false;
  std::map<std::string, SystemFile> systems; ///< by path as written in the space
  std::map<std::string, CoreTemplate, std::less<>> cores;
  VariedSection training;
  std::optional<VariedSection> accuracy;
  std::optional<ClusterTemplate> clusters; ///< empty: designs are chips
  VariedSection workload;                  ///< network and batch also apply to short trainings

  /// Values of a design's parameters and of the values derived from them.
  Values values(const Space& space, DesignId id) const;
  /// All combinations of values of `slots`, with 0 in all other slots; empty if there are more than
  /// `most`. Throws InputError if a derived value cannot be computed.
  std::vector<Values> ways(const Space& space, std::set<std::size_t> slots, std::size_t most) const;
  /// The system file of a design, with a name and cores by id. Requires that `chip:` is not a path.
  YamlNode system_file(const Space& space, DesignId id, const Values& values) const;
  /// The system file that `chip:` names. Requires system_is_path.
  const SystemFile& chosen_system(const Values& values) const;
  /// The recipe of a short training, in the format of `monet train`. Requires `accuracy`.
  YamlNode recipe(const Values& values) const;
};

} // namespace monet
