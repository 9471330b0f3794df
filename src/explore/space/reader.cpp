// Reads a space file into a Space; docs/reference/space-file.md describes every key. Commands call
// parse_space() or read_space() before an exploration.
#include "base/shared/file_kind.hpp"
#include "base/shared/fnv1a.hpp"
#include "base/shared/text.hpp"
#include "explore/space/sections.hpp"

#include "monet/base/files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

namespace monet {

namespace {

constexpr std::size_t kMaxValues = 1'000'000;
constexpr double kLargestSpace = 9e18;

bool is_identifier(std::string_view name) {
  static const std::set<std::string_view> reserved{"and", "or", "not"};
  return is_name(name) && !reserved.contains(name);
}

class Reader {
public:
  Reader(const YamlNode& root, const std::string& path) : root_(root), path_(path) {}

  Space read(std::string_view text) {
    YamlMap map(root_, problems_);
    space_.origin = path_;
    space_.name = map.string_or("name", std::filesystem::path(path_).stem().string());
    const bool of_clusters = map.has("cluster");
    if (!of_clusters)
      read_workload(map);
    if (const YamlNode* node = of_clusters ? nullptr : map.find("optimise"))
      read_optimise(*node);
    if (const YamlNode* node = map.require("parameters"))
      read_parameters(*node);
    if (const YamlNode* node = map.find("let"))
      read_derived(*node);
    if (const YamlNode* node = map.find("constraints"))
      read_constraints(*node);
    const SpaceFile file{map, space_, *made_of_, names_, problems_};
    if (of_clusters) {
      read_cluster_sections(file);
    } else {
      read_trained_sections(file);
      read_runs(map);
    }
    if (const YamlNode* node = map.find("budgets"))
      read_budgets(*node);
    const YamlNode* fronts = map.find("fronts");
    read_fronts(fronts);
    if (!of_clusters || map.has("chip"))
      read_hardware(file);
    map.finish();
    problems_.throw_if_any();
    space_.made_of = made_of_;
    trained_files_ = check_trained_sections(space_, *made_of_);
    if (of_clusters)
      cluster_files_ = check_cluster_sections(space_, *made_of_, fronts);
    hash_files(std::string(text));
    try_first_design();
    return std::move(space_);
  }

private:
  void add_name(const YamlNode::Entry& entry) {
    if (!is_identifier(entry.key))
      problems_.add(entry.key_where,
                    fmt::format("'{}' is not a name: letters, digits and _", entry.key));
    if (std::ranges::find(names_, entry.key) != names_.end())
      problems_.add(entry.key_where, fmt::format("'{}' is there already", entry.key));
    names_.push_back(entry.key);
  }

  void add_range(const YamlNode& node, Parameter& parameter) {
    YamlMap map(node, problems_);
    const double from = map.require_number("from");
    const double to = map.require_number("to", from);
    const bool geometric = map.has("factor");
    const double factor = map.number_or("factor", 2);
    const double step = map.number_or("step", 1);
    if (geometric && map.has("step"))
      problems_.add(node.where, "a range has a step or a factor, not both");
    map.finish();
    const bool fine = std::isfinite(from) && std::isfinite(to) && from <= to &&
                      (geometric ? factor > 1 && from > 0 : step > 0);
    if (!fine) {
      problems_.add(node.where, "expected from <= to and step > 0, or from > 0 and factor > 1");
      return;
    }
    // Values are multiples, not running sums, so that rounding errors do not add up. The tolerance
    // is relative: half a step of tolerance could admit one value too many.
    for (std::size_t i = 0; i <= kMaxValues; ++i) {
      const double n = static_cast<double>(i);
      const double value = geometric ? from * std::pow(factor, n) : from + step * n;
      if (value > to * (1 + 1e-12))
        return;
      parameter.values.push_back(number_value(value));
    }
  }

  Parameter read_parameter(const YamlNode::Entry& entry) {
    Parameter parameter{entry.key, {}};
    const YamlNode& node = entry.value;
    if (node.kind == YamlNode::Kind::map) {
      add_range(node, parameter);
    } else {
      const std::vector<YamlNode> one{node};
      const bool many = node.kind == YamlNode::Kind::sequence;
      for (const YamlNode& item : many ? node.items : one) {
        ProblemList not_a_number;
        const auto number = item.quoted ? std::nullopt : as_number(item, not_a_number);
        if (item.kind == YamlNode::Kind::scalar && number && std::isfinite(*number))
          parameter.values.push_back(number_value(*number));
        else if (item.kind == YamlNode::Kind::scalar && !item.scalar.empty())
          parameter.values.push_back({false, 0, item.scalar});
        else
          problems_.add(item.where, "expected a number or a name");
      }
    }
    if (parameter.values.empty())
      problems_.add(node.where, fmt::format("parameter '{}' has no values", entry.key));
    if (parameter.values.size() > kMaxValues)
      problems_.add(node.where,
                    fmt::format("parameter '{}' has more than {} values", entry.key, kMaxValues));
    std::set<std::pair<bool, std::string>> seen;
    for (const ParameterValue& value : parameter.values) {
      if (!seen.insert({value.is_number, value.text}).second)
        problems_.add(node.where, fmt::format("value {} is there twice", value.text));
    }
    return parameter;
  }

  void read_parameters(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::map || node.entries.empty()) {
      problems_.add(node.where, "expected parameters, like 'columns: [1, 2, 4]'");
      return;
    }
    double size = 1;
    for (const YamlNode::Entry& entry : node.entries) {
      add_name(entry);
      space_.parameters.push_back(read_parameter(entry));
      size *= static_cast<double>(space_.parameters.back().values.size());
    }
    if (size > kLargestSpace)
      problems_.add(node.where,
                    fmt::format("{:.3g} designs are more than {:.0g}", size, kLargestSpace));
  }

  void read_derived(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::map) {
      problems_.add(node.where, "expected names and expressions");
      return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
      const std::string text = as_string(entry.value, problems_).value_or("0");
      made_of_->derived.push_back(
          {entry.key, Expression::parse(text, entry.value.where, names_, problems_)});
      add_name(entry); // after its expression, which may not use the name
    }
  }

  void read_constraints(const YamlNode& node) {
    const std::vector<YamlNode> one{node};
    for (const YamlNode& item : node.kind == YamlNode::Kind::sequence ? node.items : one) {
      const std::string text = as_string(item, problems_).value_or("1");
      made_of_->constraints.push_back(Expression::parse(text, item.where, names_, problems_));
    }
  }

  void read_hardware(const SpaceFile& file) {
    const YamlNode* chip = file.map.require("chip");
    made_of_->system_is_path = chip != nullptr && chip->kind == YamlNode::Kind::scalar;
    if (chip != nullptr)
      made_of_->system = YamlTemplate(*chip, names_, problems_);
    if (!made_of_->system_is_path) {
      if (const YamlNode* cores = file.map.require("cores"))
        read_cores(file, *cores);
      return;
    }
    if (const YamlNode* cores = file.map.find("cores"))
      problems_.add(cores->where, "the cores of a chip of a file are those that it names");
    read_systems(file, chip->where, core_files_);
  }

  void read_cores(const SpaceFile& file, const YamlNode& node) {
    if (node.kind != YamlNode::Kind::map || node.entries.empty()) {
      problems_.add(node.where, "expected cores by name: a core, or a core file");
      return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
      Space::Template::CoreTemplate core{YamlTemplate(entry.value, names_, problems_)};
      core.is_path = entry.value.kind == YamlNode::Kind::scalar;
      if (core.is_path)
        read_core_files(file, core, entry.value.where, core_files_);
      if (!made_of_->cores.emplace(entry.key, std::move(core)).second)
        problems_.add(entry.key_where, fmt::format("core '{}' is there already", entry.key));
    }
  }

  bool has_training() const {
    return space_.workload.training.has_value() || made_of_->training.varied.has_value();
  }

  void read_runs(YamlMap& map) {
    std::vector<std::string>& runs = space_.workload.runs;
    const YamlNode* node = map.find("runs");
    if (node == nullptr) {
      runs = {"inference"};
      if (has_training())
        runs.emplace_back("training");
      return;
    }
    const std::vector<std::string> known{"inference", "training"};
    const std::vector<std::string> asked = as_strings(*node, problems_, true);
    for (const std::string& run : asked) {
      if (std::ranges::find(known, run) == known.end())
        problems_.add(node->where, fmt::format("unknown run '{}'", run),
                      nearest_name_hint(run, known));
    }
    for (const std::string& run : known) {
      if (std::ranges::find(asked, run) != asked.end())
        runs.push_back(run);
    }
    if (runs.empty())
      problems_.add(node->where, "nothing to run: inference, training or both");
    if (!has_training() && !runs.empty() && runs.back() == "training")
      problems_.add(node->where, "a training run needs 'training:'");
  }

  void read_budgets(const YamlNode& node) {
    YamlMap map(node, problems_);
    for (const auto& [key, budget] :
         {std::pair{"area_mm2", &space_.budgets.area_mm2},
          std::pair{"peak_power_w", &space_.budgets.peak_power_w},
          std::pair{"offchip_bits_per_cycle", &space_.budgets.offchip_bits_per_cycle},
          std::pair{"peak_memory_bytes", &space_.budgets.peak_memory_bytes},
          std::pair{"error", &space_.budgets.error}}) {
      const YamlNode* value = map.find(key);
      if (value == nullptr)
        continue;
      *budget = as_number(*value, problems_).value_or(1);
      if (!(*budget > 0))
        problems_.add(value->where, fmt::format("'{}' must be more than 0", key));
    }
    if (space_.budgets.error > 0 && !made_of_->accuracy)
      problems_.add(node.where, "a budget of 'error' needs 'accuracy:'");
    map.finish();
  }

  FrontRequest read_front(const YamlNode& node) {
    YamlMap map(node, problems_);
    FrontRequest front;
    front.run = read_choice(map, "run", space_.workload.runs, problems_);
    std::vector<std::string> known;
    for (const Objective objective : kDesignObjectives)
      known.emplace_back(name_of(objective));
    const YamlNode* objectives = map.require("objectives");
    for (const std::string& name : objectives != nullptr ? as_strings(*objectives, problems_, true)
                                                         : std::vector<std::string>{}) {
      const auto objective = objective_named(name, kDesignObjectives);
      if (!objective) {
        problems_.add(objectives->where, fmt::format("unknown objective '{}'", name),
                      nearest_name_hint(name, known));
        continue;
      }
      if (*objective == Objective::error && !made_of_->accuracy)
        problems_.add(objectives->where, "the objective 'error' needs 'accuracy:'",
                      "a short training of every design's arithmetic");
      if (std::ranges::find(front.objectives, *objective) != front.objectives.end())
        problems_.add(objectives->where, fmt::format("'{}' is there twice", name));
      front.objectives.push_back(*objective);
    }
    if (objectives != nullptr && (front.objectives.empty() || front.objectives.size() > 4))
      problems_.add(objectives->where, "a front has 1 to 4 objectives");
    map.finish();
    return front;
  }

  void read_fronts(const YamlNode* node) {
    using enum Objective;
    if (node == nullptr) {
      for (std::size_t run = 0; run < space_.workload.runs.size(); ++run) {
        space_.fronts.push_back({run, {latency, energy}});
        space_.fronts.push_back({run, {latency, energy, area}});
        if (made_of_->accuracy)
          space_.fronts.push_back({run, {error, energy}});
      }
      return;
    }
    if (node->kind != YamlNode::Kind::sequence || node->items.empty() || node->items.size() > 64) {
      problems_.add(node->where,
                    "expected 1 to 64 fronts, like {run: training, objectives: [latency, energy]}");
      return;
    }
    for (const YamlNode& item : node->items) {
      FrontRequest front = read_front(item);
      if (std::ranges::find(space_.fronts, front) != space_.fronts.end())
        problems_.add(item.where, "this front is there already");
      space_.fronts.push_back(std::move(front));
    }
  }

  void read_workload(YamlMap& map) {
    StudiedWorkload& workload = space_.workload;
    const YamlNode* network = map.require("workload");
    if (network != nullptr &&
        !is_varied(*network)) // varied sections are read per design, like `training:`
      read_network_section(*network, path_, workload, problems_);
    const YamlNode* training = map.find("training");
    if (training != nullptr && !is_varied(*training))
      read_training_section(*training, path_, workload, problems_);
    if (const YamlNode* node = map.find("precision"))
      workload.precision = read_precision_options(*node, problems_);
    read_mapping_key(map, path_, workload, problems_);
    if (const YamlNode* node = map.find("schedule")) {
      read_schedule_section(*node, path_, workload, problems_);
      if (!workload.stacks.empty())
        problems_.add(node->where, "stacks of a file do not suit every chip of a space");
      if (workload.effort != Effort::normal)
        problems_.add(node->where, "explorations have one effort, quick", "leave out 'effort'");
    }
  }

  std::optional<InnerSearch> read_search(YamlMap& map, std::string_view key) {
    constexpr std::int64_t kMax = 1'000'000;
    const YamlNode* node = map.find(key);
    if (node == nullptr)
      return std::nullopt;
    YamlMap search(*node, problems_);
    InnerSearch found;
    const std::vector<std::string> objectives{"latency", "energy", "edp"};
    found.objective = objectives[read_choice(search, "objective", objectives, problems_)];
    found.evaluations = search.integer_or("evaluations", 40);
    if (found.evaluations < 1 || found.evaluations > kMax)
      problems_.add(node->where, fmt::format("'evaluations' must be 1 to {}", kMax));
    search.finish();
    return found;
  }

  void read_optimise(const YamlNode& node) {
    YamlMap map(node, problems_);
    StudiedWorkload& workload = space_.workload;
    workload.fusion = read_search(map, "fusion");
    workload.allocation = read_search(map, "allocation");
    const std::int64_t seed = map.integer_or("seed", 1);
    if (seed < 0)
      problems_.add(node.where, "'seed' must not be negative");
    workload.search_seed = static_cast<std::uint64_t>(seed);
    map.finish();
  }

  void hash_files(std::string hashed) {
    // The hash function must not change: existing stores contain its values.
    const auto hash = [](std::string_view bytes) { return fmt::format("{:016x}", fnv1a(bytes)); };
    space_.files.push_back(path_);
    for (const std::string& file : space_.workload.files)
      space_.files.push_back(file);
    if (!space_.workload.network.empty())
      space_.files.push_back(space_.workload.network);
    if (!space_.workload.mapping.empty())
      space_.files.push_back(space_.workload.mapping);
    for (const auto* files : {&core_files_, &cluster_files_, &trained_files_})
      space_.files.insert(space_.files.end(), files->begin(), files->end());
    for (std::size_t i = 1; i < space_.files.size(); ++i)
      hashed += hash(read_file(space_.files[i]));
    space_.content_hash = hash(hashed);
  }

  /// Builds the chip of the first design, so that a faulty template is reported as an error of the
  /// space file and not as an infeasible design.
  void try_first_design() {
    const DesignId id = space_.first_design();
    if (!made_of_->clusters && space_.broken_constraint(id).empty())
      space_.chip(id);
  }

  const YamlNode& root_;
  std::string path_;
  Space space_;
  std::shared_ptr<Space::Template> made_of_ = std::make_shared<Space::Template>();
  std::vector<std::string> names_; ///< slots of expressions
  std::vector<std::string> core_files_;
  std::vector<std::string> cluster_files_; ///< that designs may choose, and files named in them
  std::vector<std::string> trained_files_; ///< networks, data and weights of short trainings
  ProblemList problems_;
};

} // namespace

Space parse_space(std::string_view text, const std::string& origin) {
  const YamlNode root = parse_yaml(text, origin);
  require_kind(root, {FileKind::space});
  return Reader(root, origin).read(text);
}

Space read_space(const std::string& path) {
  return parse_space(read_file(path, std::size_t{1} << 24), path);
}

} // namespace monet
