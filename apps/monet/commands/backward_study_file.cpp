// Reads the file of a study of `monet backward`: networks, machines and choices. backward_study.cpp
// evaluates the study.
#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"
#include "commands/backward_study.hpp"
#include "pipeline.hpp"

#include "monet/base/yaml.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace monet::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxStudyCores = 64;
constexpr std::int64_t kMaxStudyBatch = std::int64_t{1} << 20;
constexpr double kMaxGbPerSecond = 1e6;
const std::vector<std::string> kMachineNames{"small", "large"};
const std::vector<std::string> kAverageWords{"models", "time"};
const std::vector<std::string> kMeasureWords{"time", "speed"};

class StudyReader {
public:
  StudyReader(const std::string& path, ProblemList& problems)
      : folder_(fs::path(path).parent_path()), problems_(problems) {}

  Study read(const YamlNode& root) {
    YamlMap map(root, problems_);
    study_.name = map.string_or("name", "study");
    study_.folder = (folder_ / map.require_string("tables")).string();
    read_machines(map.require("machines"));
    read_networks(map.require("networks"));
    if (const YamlNode* cores = map.find("cores"))
      study_.cores = integers(*cores, 2, kMaxStudyCores);
    if (const YamlNode* batches = map.find("batches"))
      study_.batches = integers(*batches, 1, kMaxStudyBatch);
    read_bandwidths(map.find("bandwidths_gb_per_s"));
    if (const YamlNode* choices = map.find("choices"))
      read_choices(*choices, study_.choices);
    read_published(map.find("published"));
    study_.searches = map.boolean_or("searches", true);
    read_ambiguities(map.find("ambiguities"));
    map.finish();
    read_tables();
    return std::move(study_);
  }

private:
  static bool is_map(const YamlNode* node) {
    return node != nullptr && node->kind == YamlNode::Kind::map;
  }

  void read_machines(const YamlNode* node) {
    if (node == nullptr)
      return;
    YamlMap machines(*node, problems_);
    for (const std::string& name : kMachineNames) {
      const YamlNode* entry = machines.require(name);
      if (entry == nullptr)
        continue;
      YamlMap map(*entry, problems_);
      StudyMachine machine;
      machine.hardware = (folder_ / map.require_string("hardware")).string();
      machine.gb_per_s = map.number_or("gb_per_s", 0);
      if (!(machine.gb_per_s >= 0 && machine.gb_per_s <= kMaxGbPerSecond))
        problems_.add(entry->where, "'gb_per_s' must be 0 to 10^6");
      machine.batch = map.integer_or("batch", 1);
      if (machine.batch < 1 || machine.batch > kMaxStudyBatch)
        problems_.add(entry->where, "'batch' must be 1 to 2^20");
      map.finish();
      study_.machines[name] = std::move(machine);
    }
    machines.finish();
  }

  void read_networks(const YamlNode* node) {
    if (node == nullptr)
      return;
    const YamlMap networks(*node, problems_);
    for (const YamlNode::Entry& entry : networks.node().entries) {
      StudyNetwork network{entry.key, {}};
      if (is_map(&entry.value)) {
        YamlMap map(entry.value, problems_);
        for (const std::string& machine : kMachineNames)
          network.tables[machine] = map.require_string(machine);
        map.finish();
      } else if (const auto table = as_string(entry.value, problems_)) {
        for (const std::string& machine : kMachineNames)
          network.tables[machine] = *table;
      }
      study_.networks.push_back(std::move(network));
    }
    if (study_.networks.empty())
      problems_.add(node->where, "'networks' must be a map of at least one network");
  }

  std::vector<std::int64_t> integers(const YamlNode& node, std::int64_t least, std::int64_t most) {
    std::vector<std::int64_t> values = as_integers(node, problems_);
    for (const std::int64_t value : values) {
      if (value < least || value > most)
        problems_.add(node.where, fmt::format("{} is not {} to {}", value, least, most));
    }
    return values;
  }

  void read_bandwidths(const YamlNode* node) {
    if (node == nullptr)
      return;
    if (node->kind != YamlNode::Kind::sequence)
      problems_.add(node->where, "'bandwidths_gb_per_s' must be a list");
    for (const YamlNode& item : node->items) {
      const auto value = as_number(item, problems_);
      if (value && !(*value > 0 && *value <= kMaxGbPerSecond))
        problems_.add(item.where, "a bandwidth must be above 0 and at most 10^6");
      study_.bandwidths.push_back(value.value_or(1));
    }
  }

  void read_published(const YamlNode* node) {
    if (node == nullptr)
      return;
    const YamlMap figures(*node, problems_);
    for (const YamlNode::Entry& entry : figures.node().entries) {
      if (const auto value = as_number(entry.value, problems_))
        study_.published[entry.key] = *value;
    }
  }

  void read_word(YamlMap& map, const char* key, std::string& word,
                 const std::vector<std::string>& words) {
    const YamlNode* node = map.find(key);
    const auto text = node != nullptr ? as_string(*node, problems_) : std::nullopt;
    if (!text)
      return;
    if (std::ranges::find(words, *text) == words.end())
      problems_.add(node->where,
                    fmt::format("'{}' is '{}'; it may be {}", key, *text, fmt::join(words, ", ")),
                    nearest_name_hint(*text, words));
    else
      word = *text;
  }

  void read_choices(const YamlNode& node, StudyChoices& choices) {
    YamlMap map(node, problems_);
    read_word(map, "tiles", choices.tiles, kTileWords);
    read_word(map, "keep", choices.keep, kKeepWords);
    read_word(map, "major", choices.major, kMajorWords);
    read_word(map, "timing", choices.timing, kTimingWords);
    read_word(map, "im2col", choices.im2col, kIm2colWords);
    read_word(map, "rule", choices.rule, kRuleWords);
    read_word(map, "average", choices.average, kAverageWords);
    read_word(map, "measure", choices.measure, kMeasureWords);
    const auto bits = [&](const char* key, std::int64_t& value) {
      value = map.integer_or(key, value);
      if (value < 1 || value > kMaxGemmElementBits)
        problems_.add(node.where, fmt::format("'{}' must be 1 to {}", key, kMaxGemmElementBits));
    };
    bits("element_bits", choices.element_bits);
    bits("partial_bits", choices.partial_bits);
    choices.pipelined = map.boolean_or("pipelined", choices.pipelined);
    choices.wait_for_writes = map.boolean_or("wait_for_writes", choices.wait_for_writes);
    choices.single_buffer = map.boolean_or("single_buffer", choices.single_buffer);
    choices.table_suffix = map.string_or("table_suffix", choices.table_suffix);
    map.finish();
  }

  void read_ambiguities(const YamlNode* node) {
    if (node == nullptr)
      return;
    const YamlMap all(*node, problems_);
    for (const YamlNode::Entry& entry : all.node().entries) {
      YamlMap map(entry.value, problems_);
      StudyAmbiguity ambiguity{
          entry.key, map.require_string("what"), map.require_string("ours"), {}};
      const YamlNode* others = map.find("others");
      if (others != nullptr && others->kind != YamlNode::Kind::sequence)
        problems_.add(others->where, "'others' must be a list");
      for (const YamlNode& other : others == nullptr ? std::vector<YamlNode>{} : others->items) {
        YamlMap one(other, problems_);
        StudyAssumption assumption{entry.key, one.require_string("says"), study_.choices};
        if (const YamlNode* choices = one.require("choices"))
          read_choices(*choices, assumption.choices);
        one.finish();
        ambiguity.others.push_back(assumption.says);
        study_.assumptions.push_back(std::move(assumption));
      }
      map.finish();
      study_.ambiguities.push_back(std::move(ambiguity));
    }
  }

  /// Reads the tables of all networks, with the suffixes of all choices.
  void read_tables() {
    std::vector<std::string> suffixes{""};
    if (!study_.choices.table_suffix.empty())
      suffixes.push_back(study_.choices.table_suffix);
    for (const StudyAssumption& assumption : study_.assumptions) {
      if (!assumption.choices.table_suffix.empty())
        suffixes.push_back(assumption.choices.table_suffix);
    }
    for (const StudyNetwork& network : study_.networks) {
      for (const auto& [machine, table] : network.tables) {
        for (const std::string& suffix : suffixes)
          read_table(table + suffix, suffix.empty());
      }
    }
  }

  void read_table(const std::string& name, bool required) {
    const std::string path = (fs::path(study_.folder) / (name + ".yaml")).string();
    std::error_code ignored;
    if (study_.tables.contains(name) || (!required && !fs::exists(path, ignored)))
      return;
    if (auto table = collecting(problems_, [&] { return read_gemm_table(path); })) {
      study_.tables[name] = *std::move(table);
      study_.files.push_back(path);
    }
  }

  fs::path folder_;
  ProblemList& problems_;
  Study study_;
};

} // namespace

const GemmTable& Study::table(const StudyNetwork& network, const std::string& machine,
                              const StudyChoices& with) const {
  const std::string& usual = network.tables.at(machine);
  const auto special = tables.find(usual + with.table_suffix);
  return special != tables.end() ? special->second : tables.at(usual);
}

Study read_study(const std::string& path) {
  ProblemList problems;
  StudyReader reader(path, problems);
  const YamlNode root = load_yaml(path);
  require_kind(root, {FileKind::backward_study});
  Study study = reader.read(root);
  for (auto& [name, machine] : study.machines) {
    if (auto chip = collecting(problems, [&] { return read_chip(machine.hardware); })) {
      machine.chip = *std::move(chip);
      const std::vector<std::string> files = files_of(machine.chip);
      study.files.insert(study.files.end(), files.begin(), files.end());
    }
  }
  problems.throw_if_any();
  study.files.push_back(path);
  return study;
}

} // namespace monet::cli
