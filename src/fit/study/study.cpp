// Reads experiment.yaml of training runs into a TrainStudy; the train command calls it.
#include "monet/fit/study.hpp"

#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"
#include "base/shared/yaml_overlay.hpp"

#include "monet/base/files.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

namespace monet {

namespace {

constexpr std::int64_t kMaxSteps = 1'000'000'000;
constexpr std::size_t kMaxSeeds = 1000;
constexpr std::size_t kLongestName = 60;
constexpr std::string_view kOnlyRun = "run";
/// Keys that do not distinguish runs of a recipe.
constexpr std::array<std::string_view, 5> kNotOfARun{"name", "variants", "seed", "seeds",
                                                     "checkpoint"};

YamlNode without(YamlNode map, std::span<const std::string_view> keys) {
  std::erase_if(map.entries, [&](const YamlNode::Entry& entry) {
    return std::ranges::find(keys, entry.key) != keys.end();
  });
  return map;
}

/// Reads the sections of one variant.
class RecipeReader {
public:
  RecipeReader(const YamlNode& node, const std::string& path, ProblemList& problems)
      : map_(node, problems), path_(path), problems_(problems) {}

  TrainRecipe read(std::string name) {
    recipe_.name = std::move(name);
    recipe_.network = path_of("network");
    if (map_.has("batch"))
      recipe_.batch = integer(map_, "batch", 1, 1, std::int64_t{1} << 20);
    if (const YamlNode* training = map_.require("training"))
      recipe_.training = {read_training_options(*training, problems_), training->where};
    read_length();
    if (const YamlNode* rate = map_.find("rate"))
      read_rate(*rate);
    read_seeds();
    read_arithmetic();
    recipe_.evaluate_every = integer(map_, "evaluate_every", 1, 0, kMaxSteps);
    if (const YamlNode* checkpoint = map_.find("checkpoint"))
      read_checkpoint(*checkpoint);
    recipe_.initial.where = map_.node().where;
    if (const YamlNode* initial = map_.find("initial"))
      read_initial(*initial);
    if (choice(map_, "on_nonfinite", {"stop", "skip"}) == 1)
      recipe_.on_nonfinite = OnNonFinite::skip;
    map_.require("data"); // shared by variants: read by StudyReader
    map_.finish();
    return std::move(recipe_);
  }

private:
  std::int64_t integer(YamlMap& map, std::string_view key, std::int64_t fallback,
                       std::int64_t least, std::int64_t most) {
    const YamlNode* node = map.find(key);
    const auto value = node ? as_integer(*node, problems_) : std::nullopt;
    if (!value)
      return fallback;
    if (*value >= least && *value <= most)
      return *value;
    problems_.add(node->where, fmt::format("'{}' is {}, not {} to {}", key, *value, least, most));
    return fallback;
  }

  /// Index of a key's value among `names`; 0 if the key is absent or the value unknown.
  std::size_t choice(YamlMap& map, std::string_view key, const std::vector<std::string>& names) {
    const YamlNode* node = map.find(key);
    const auto name = node ? as_string(*node, problems_) : std::nullopt;
    if (!name)
      return 0;
    const auto known = std::ranges::find(names, *name);
    if (known != names.end())
      return static_cast<std::size_t>(known - names.begin());
    const std::string hint = nearest_name_hint(*name, names);
    problems_.add(node->where, fmt::format("unknown {} '{}'", key, *name),
                  hint.empty() ? all_of(names) : hint);
    return 0;
  }
  static std::string all_of(const std::vector<std::string>& names) {
    std::string text = names.front();
    for (std::size_t i = 1; i < names.size(); ++i)
      text += (i + 1 == names.size() ? " or " : ", ") + names[i];
    return text;
  }

  Located<std::string> path_of(std::string_view key) {
    const YamlNode* node = map_.require(key);
    const auto file = node ? as_string(*node, problems_) : std::nullopt;
    if (!file || file->empty()) {
      if (file)
        problems_.add(node->where, "expected the name of a file");
      return {};
    }
    return {resolve_beside(path_, *file), node->where};
  }

  void read_length() {
    recipe_.epochs = integer(map_, "epochs", 0, 1, kMaxSteps);
    recipe_.steps = integer(map_, "steps", 0, 1, kMaxSteps);
    if (!map_.has("epochs") && !map_.has("steps"))
      problems_.add(map_.node().where, "the length of the training is missing",
                    "'epochs', 'steps' or both");
  }

  void read_rate(const YamlNode& node) {
    YamlMap map(node, problems_);
    using Kind = RateSchedule::Kind;
    RateSchedule& rate = recipe_.rate;
    rate.kind =
        static_cast<Kind>(choice(map, "schedule", {"constant", "cosine", "step", "linear"}));
    rate.warmup = integer(map, "warmup", 0, 0, kMaxSteps);
    if (rate.kind == Kind::step) {
      if (const YamlNode* milestones = map.require("milestones"))
        rate.milestones = as_integers(*milestones, problems_);
      for (const std::int64_t epoch : rate.milestones) {
        if (epoch < 1)
          problems_.add(map.find("milestones")->where, "milestones are epochs from 1 on");
      }
      rate.factor = share(map, "factor", rate.factor);
    } else if (rate.kind != Kind::constant) {
      rate.last = share(map, "last", rate.last);
    }
    map.finish();
  }

  double share(YamlMap& map, std::string_view key, double fallback) {
    const double value = map.number_or(key, fallback);
    if (value >= 0 && value <= 1)
      return value;
    problems_.add(map.find(key)->where, fmt::format("'{}' is {}, not 0 to 1", key, value));
    return fallback;
  }

  void read_seeds() {
    const YamlNode* one = map_.find("seed");
    const YamlNode* several = map_.find("seeds");
    if (one != nullptr && several != nullptr)
      problems_.add(one->where, "'seed' and 'seeds' are the same key", "leave out one");
    const YamlNode* node = several != nullptr ? several : one;
    if (node == nullptr)
      return;
    Integers seeds;
    if (several != nullptr)
      seeds = as_integers(*several, problems_);
    else if (const auto seed = as_integer(*one, problems_))
      seeds = {*seed};
    const std::set<std::int64_t> distinct(seeds.begin(), seeds.end());
    if (seeds.empty() || seeds.size() > kMaxSeeds || distinct.size() != seeds.size() ||
        *distinct.begin() < 0)
      problems_.add(node->where,
                    fmt::format("expected 1 to {} different seeds, none below 0", kMaxSeeds));
    recipe_.seeds.assign(seeds.begin(), seeds.end());
  }

  void read_arithmetic() {
    const YamlNode* node = map_.find("arithmetic");
    const auto name = node ? as_string(*node, problems_) : std::nullopt;
    if (!name)
      return;
    if (const auto arithmetic = arithmetic_named(*name))
      recipe_.arithmetic = *arithmetic;
    else
      problems_.add(node->where, fmt::format("unknown arithmetic '{}'", *name),
                    all_of(arithmetic_names()));
  }

  /// Reads an interval: "100 steps", "1 epoch".
  void read_every(const YamlNode& node) {
    const std::string text = as_string(node, problems_).value_or("");
    const std::size_t space = text.find(' ');
    const std::string unit = space == std::string::npos ? "" : text.substr(space + 1);
    YamlNode number = node;
    number.scalar = text.substr(0, space);
    number.quoted = false; // quotes enclose "2 steps", not the 2
    recipe_.checkpoint.epochs = unit == "epoch" || unit == "epochs";
    ProblemList ignored;
    const std::int64_t every = as_integer(number, ignored).value_or(0);
    const bool known = recipe_.checkpoint.epochs || unit == "step" || unit == "steps";
    if (!known || every < 1 || every > kMaxSteps)
      problems_.add(node.where, fmt::format("'{}' is not a number of steps or epochs", text),
                    "for example 100 steps, or 1 epoch");
    recipe_.checkpoint.every = every;
  }

  void read_checkpoint(const YamlNode& node) {
    YamlMap map(node, problems_);
    if (const YamlNode* every = map.require("every"))
      read_every(*every);
    recipe_.checkpoint.keep = integer(map, "keep", 1, 1, 1'000'000);
    map.finish();
  }

  void read_initial(const YamlNode& node) {
    YamlMap map(node, problems_);
    InitialOptions& initial = recipe_.initial;
    initial.where = node.where;
    initial.scheme = static_cast<InitialOptions::Scheme>(
        choice(map, "scheme", {"he_normal", "he_uniform", "pytorch", "network", "file"}));
    if (initial.scheme == InitialOptions::Scheme::file) {
      const std::string file = map.require_string("path");
      if (!file.empty())
        initial.path = resolve_beside(path_, file);
    }
    map.finish();
  }

  YamlMap map_;
  const std::string& path_;
  ProblemList& problems_;
  TrainRecipe recipe_;
};

class StudyReader {
public:
  explicit StudyReader(const std::string& path) : path_(path) { study_.files.push_back(path); }

  TrainStudy read(const YamlNode& root) {
    require_kind(root, {FileKind::training_experiment});
    ProblemList problems;
    YamlMap map(root, problems); // the variants' readers check its keys
    study_.name = map.string_or("name", std::filesystem::path(path_).stem().string());
    const std::array<std::string_view, 2> own{"name", "variants"};
    const YamlNode base = with_training(without(root, own), problems);
    if (const YamlNode* variants = map.find("variants"))
      read_variants(*variants, base, problems);
    else if (root.kind == YamlNode::Kind::map)
      add(std::string(kOnlyRun), base, problems);
    throw_once(problems);
    return std::move(study_);
  }

private:
  /// Replaces the file name in `training:` by the file's content.
  YamlNode with_training(YamlNode map, ProblemList& problems) {
    const auto entry = std::ranges::find(map.entries, "training", &YamlNode::Entry::key);
    if (entry == map.entries.end())
      return map;
    YamlNode& training = entry->value;
    if (training.kind == YamlNode::Kind::scalar && !training.scalar.empty()) {
      try {
        const std::string file = resolve_beside(path_, training.scalar);
        training = load_yaml(file);
        require_kind(training, {FileKind::training});
        if (std::ranges::find(study_.files, file) == study_.files.end())
          study_.files.push_back(file);
      } catch (const InputError& error) {
        problems.add(error.problems());
        map.entries.erase(entry);
        return map;
      }
    }
    return map;
  }

  static bool is_name(std::string_view name) {
    const auto fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.' || c == '+';
    };
    return !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
           std::ranges::all_of(name, fits);
  }

  void read_variants(const YamlNode& node, const YamlNode& base, ProblemList& problems) {
    const YamlMap map(node, problems); // reports duplicate keys
    if (node.kind == YamlNode::Kind::map && node.entries.empty())
      problems.add(node.where, "there are no variants", "a name and keys for each");
    for (const YamlNode::Entry& entry : node.entries) {
      if (!is_name(entry.key)) {
        problems.add(entry.key_where,
                     fmt::format("'{}' names no folder: letters, digits and _ - . + only, at most "
                                 "{}",
                                 entry.key, kLongestName));
        continue;
      }
      if (entry.value.kind == YamlNode::Kind::null) { // the unchanged recipe
        add(entry.key, base, problems);
        continue;
      }
      const YamlMap twice(entry.value, problems);
      add(entry.key, overlaid(base, with_training(entry.value, problems)), problems);
    }
  }

  void add(std::string name, const YamlNode& merged, ProblemList& problems) {
    TrainRecipe recipe = RecipeReader(merged, path_, problems).read(std::move(name));
    recipe.text = canonical_text(without(merged, kNotOfARun));
    recipe.data = data_of(merged, problems);
    study_.variants.push_back(std::move(recipe));
  }

  /// Index of a variant's images; variants with the same section share them.
  std::size_t data_of(const YamlNode& merged, ProblemList& problems) {
    ProblemList known; // reported by the recipe's reader
    YamlMap map(merged, known);
    const YamlNode* node = map.find("data");
    if (node == nullptr)
      return 0;
    const auto [at, is_new] = places_.emplace(canonical_text(*node), study_.data.size());
    if (is_new)
      study_.data.push_back(read_data_options(*node, path_, problems));
    return at->second;
  }

  /// Throws each problem once, although every variant reads the shared sections again.
  static void throw_once(const ProblemList& problems) {
    ProblemList once;
    std::set<std::string> said;
    for (const InputProblem& problem : problems.problems()) {
      if (said.insert(problem.to_string()).second)
        once.add(problem.where, problem.what, problem.hint);
    }
    once.throw_if_any();
  }

  const std::string& path_;
  TrainStudy study_;
  std::map<std::string, std::size_t> places_; ///< index of each data section
};

} // namespace

TrainStudy read_train_study(const std::string& path) {
  return StudyReader(path).read(load_yaml(path));
}

TrainStudy train_study_of(const YamlNode& root, const std::string& path) {
  return StudyReader(path).read(root);
}

} // namespace monet
