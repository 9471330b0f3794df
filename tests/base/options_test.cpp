// Options of a struct as a table: reading files, names on the command line, what is reported.
#include "monet/base/options.hpp"

#include <gtest/gtest.h>

#include <array>

namespace monet {
namespace MONET_TEST_FILE {

constexpr std::array kColours{NamedChoice<int>{"red", 7}, NamedChoice<int>{"green", 9}};
const std::vector<std::string> kSides{"left", "right"};

struct Inner {
  double share = 0.5;
};
struct Settings {
  int colour = 9;
  std::int64_t rounds = 2;
  std::uint64_t seed = 1;
  int limit = 6;
  bool fast = false;
  std::vector<std::string> sides;
  Inner inner;
  int calls = 0;
};
constexpr OptionRow<Settings> kSettings[] = {
    {"colour", option_choice<kColours, &Settings::colour>, "Colour"},
    {"rounds",
     option_field<&Settings::rounds>,
     "Rounds",
     {.range = NumberRange{1, 100}},
     [](Settings& settings) { ++settings.calls; }},
    {"seed", option_field<&Settings::seed>, "Seed"},
    {"fac_limit",
     option_field<&Settings::limit>,
     "Limit",
     {.range = NumberRange{1, 64}, .zero_is_none = true}},
    {"fast", option_field<&Settings::fast>, "Fast", {.place = OptionPlace::command}},
    {"sides", option_field<&Settings::sides>, "Sides", {.names = &kSides}},
    {"share", option_field<&Settings::inner, &Inner::share>, "Share", {.range = NumberRange{0, 1}}},
};

/// Reads settings; `problems` receives what is reported.
Settings read(const std::string& text, std::vector<std::string>& problems) {
  const YamlNode node = parse_yaml(text, "s.yaml");
  ProblemList list;
  Settings settings;
  YamlMap map(node, list);
  read_options(map, bind(kSettings, settings), list);
  map.finish();
  for (const InputProblem& problem : list.problems())
    problems.push_back(problem.to_string());
  return settings;
}

TEST(Options, AreReadFromAMap) {
  std::vector<std::string> problems;
  const Settings settings = read("{colour: red, rounds: 3, seed: 5, fac_limit: none, sides: left, "
                                 "share: 0.25}",
                                 problems);
  EXPECT_EQ(problems, std::vector<std::string>{});
  EXPECT_EQ(settings.colour, 7);
  EXPECT_EQ(settings.rounds, 3);
  EXPECT_EQ(settings.calls, 1);
  EXPECT_EQ(settings.seed, 5U);
  EXPECT_EQ(settings.limit, 0);
  EXPECT_EQ(settings.sides, std::vector<std::string>{"left"});
  EXPECT_EQ(settings.inner.share, 0.25);
}

TEST(Options, KeepTheirDefaultsWithoutAKey) {
  std::vector<std::string> problems;
  const Settings settings = read("{}", problems);
  EXPECT_EQ(problems, std::vector<std::string>{});
  EXPECT_EQ(settings.colour, 9);
  EXPECT_EQ(settings.calls, 0);
}

TEST(Options, ReportValuesWithTheirPlaces) {
  std::vector<std::string> problems;
  const Settings settings = read("colour: rad\nrounds: 0\nseed: -1\nfac_limit: 65\nfast: true\n"
                                 "sides: [left, up]\nshare: 1.5\n",
                                 problems);
  EXPECT_EQ(problems, (std::vector<std::string>{
                          "s.yaml:1:9: unknown colour 'rad' (did you mean 'red'?)",
                          "s.yaml:2:9: 'rounds' is 0, outside [1, 100]",
                          "s.yaml:3:7: 'seed' is -1, below 0",
                          "s.yaml:4:12: fac_limit must be 1 to 64, or none",
                          "s.yaml:6:8: unknown sides 'up'",
                          "s.yaml:7:8: 'share' is 1.5, outside [0, 1]",
                          "s.yaml:5:1: unknown key 'fast'",
                      }));
  EXPECT_EQ(settings.rounds, 2) << "an invalid value leaves the option unchanged";
  EXPECT_EQ(settings.calls, 0);
}

TEST(Options, HaveNamesOnTheCommandLine) {
  Settings settings;
  const std::vector<BoundOption> options = bind(kSettings, settings);
  EXPECT_EQ(options.at(3).name(), "--fac-limit");
  const auto& colour = std::get<NamedValue>(options.front().value);
  EXPECT_EQ(colour.name(), "green");
  EXPECT_TRUE(colour.assign("red"));
  EXPECT_FALSE(colour.assign("blue"));
  EXPECT_EQ(settings.colour, 7);
}

} // namespace MONET_TEST_FILE
} // namespace monet
