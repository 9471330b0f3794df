// Small networks of the kinds that people bring, against PyTorch: what is trained, MACs by kind,
// bytes that its autograd stores, the loss and every gradient. tests/fixtures/training/ is written
// by tools/make_training_fixtures.py; what is known to differ is in known_differences.json there,
// with its reason, and has to differ.
#include "execute/compare.hpp"
#include "execute/training_case.hpp"

#include "monet/base/errors.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>

namespace monet {
namespace MONET_TEST_FILE {

using nlohmann::json;

constexpr double kTolerance = 1e-8; // of numbers that are kept with 12 digits

/// What differs is collected by kind, to be compared with what is known to.
class Case {
public:
  explicit Case(const std::string& name) : Case(name, test::read_training_case(name)) {}
  Case(const std::string& name, json facts) : name_(name), facts_(std::move(facts)) {}

  std::map<std::string, std::string> differences() {
    try {
      const TrainingGraph plain = step("minimal", true);
      const TrainingGraph eager = step("pytorch-eager", true);
      figures(plain, eager);
      if (facts_.at("compare").get<bool>()) {
        numbers(plain, eager);
      } else {
        gradients_of(plain);
        gradients_of(eager);
      }
    } catch (const InputError& error) {
      add("refused", error.problems().front().what);
    }
    return std::move(found_);
  }

private:
  void add(const std::string& kind, std::string what) {
    found_.emplace(kind, std::move(what)); // the first of its kind
  }
  void expect(const std::string& kind, std::string_view what, std::int64_t is,
              std::int64_t expected) {
    if (is != expected)
      add(kind, fmt::format("{}: {} instead of {}", what, is, expected));
  }

  TrainingGraph step(const std::string& store, bool fused) const {
    TrainingGraph made = test::make_training_case(
        name_, facts_,
        {{"store", store}, {"optimizer", "sgd"}, {"update", fused ? "fused" : "unfused"}});
    verify(made);
    verify(fold_views(made));
    return made;
  }

  void figures(const TrainingGraph& plain, const TrainingGraph& eager) {
    expect("parameters", "trained parameters", trained_count(plain), facts_.at("parameters"));
    const MacSplit macs = count_macs(plain.graph);
    const json& wanted = facts_.at("macs");
    expect("macs", "forward MACs", macs.forward, wanted.at("forward"));
    expect("macs", "dX MACs", macs.backward_input, wanted.at("backward_input"));
    expect("macs", "dW MACs", macs.backward_weight, wanted.at("backward_weight"));
    expect("eager", "bytes stored", eager.stored_bytes, facts_.at("eager_bytes"));
    const std::int64_t least = fold_views(plain).stored_bytes;
    const std::int64_t most = std::min<std::int64_t>(eager.stored_bytes, facts_.at("eager_bytes"));
    if (least > most)
      add("minimal", fmt::format("{} bytes are stored, {} are enough", least, most));
  }

  std::map<std::string, std::vector<double>> gradients_of(const TrainingGraph& step,
                                                          std::optional<double>* loss = nullptr) {
    Execution execution(step.graph);
    test::feed_training_case(execution, step, name_, facts_);
    execution.run();
    if (loss && step.loss) {
      *loss = execution.get(*step.loss).at(0);
      statistics(step, execution);
    }
    std::map<std::string, std::vector<double>> gradients;
    for (const ParameterRecord& record : step.parameters)
      gradients.emplace(step.graph.tensor(record.weight).name, execution.get(record.gradient));
    return gradients;
  }

  /// Running statistics, also of a layer that is called several times.
  void statistics(const TrainingGraph& step, const Execution& execution) {
    for (const json& expected : facts_.at("buffers")) {
      const auto id = step.graph.find_tensor(expected.at("updated").get<std::string>());
      if (!id) {
        add("statistics", fmt::format("{} is lost", expected.at("name").get<std::string>()));
        continue;
      }
      const auto result =
          test::compare(expected, expected.at("shape"), execution.get(*id), kTolerance);
      if (!result.problem.empty())
        add("statistics", expected.at("name").get<std::string>() + ": " + result.problem);
    }
  }

  void numbers(const TrainingGraph& plain, const TrainingGraph& eager) {
    std::optional<double> loss;
    const auto gradients = gradients_of(plain, &loss);
    const double wanted = facts_.at("loss");
    if (!loss || std::abs(*loss - wanted) > kTolerance * std::max(1e-3, std::abs(wanted)))
      add("loss", fmt::format("loss {} instead of {}", loss.value_or(0.0), wanted));
    for (const json& expected : facts_.at("gradients")) {
      const auto own = gradients.find(expected.at("name"));
      if (own == gradients.end()) {
        add("gradients", fmt::format("{} has none", expected.at("name").get<std::string>()));
        continue;
      }
      if (expected.value("rounding", false))
        continue;
      const auto result = test::compare(expected, expected.at("shape"), own->second, kTolerance);
      if (!result.problem.empty())
        add("gradients", own->first + ": " + result.problem);
    }
    if (gradients_of(eager) != gradients || gradients_of(step("minimal", false)) != gradients)
      add("policies", "how results are stored or updated changes a gradient");
  }

  std::string name_;
  json facts_;
  std::map<std::string, std::string> found_;
};

TEST(TrainingCaseChecker, FailsWhereAGradientIsMissing) {
  const std::string name = "detection_anchors";
  const json facts = test::read_training_case(name);
  EXPECT_EQ(Case(name, facts).differences().count("gradients"), 0U);
  json more = facts;
  more["gradients"].push_back({{"name", "ghost"}, {"rounding", true}});
  EXPECT_EQ(Case(name, more).differences().at("gradients"), "ghost has none");
}

class TrainingCases : public testing::TestWithParam<std::string> {};

TEST_P(TrainingCases, EqualPyTorch) {
  std::ifstream file(test::kTrainingFixtures / "known_differences.json");
  const json known = json::parse(file);
  for (const std::string& name : test::training_families().at(GetParam())) {
    const auto found = Case(name).differences();
    std::set<std::string> wanted;
    if (known.contains(name)) {
      for (const auto& [kind, why] : known.at(name).items())
        wanted.insert(kind);
    }
    for (const auto& [kind, what] : found)
      EXPECT_TRUE(wanted.count(kind)) << name << ", " << kind << ": " << what;
    for (const std::string& kind : wanted)
      EXPECT_TRUE(found.count(kind)) << name << ": '" << kind << "' does not differ any more";
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TrainingCases, testing::ValuesIn(test::training_family_names()),
                         [](const auto& family) { return family.param; });

} // namespace MONET_TEST_FILE
} // namespace monet
