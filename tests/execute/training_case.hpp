// One network of tests/fixtures/training/: what PyTorch did with it, and the same step made and
// fed. tools/make_training_fixtures.py writes networks.tar and the facts, a file for each family.
#pragma once

#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace monet::test {

inline const std::filesystem::path kTrainingFixtures = MONET_SOURCE_DIR "/tests/fixtures/training";

/// Names of all cases by family, sorted.
const std::map<std::string, std::vector<std::string>>& training_families();
std::vector<std::string> training_family_names();

/// The recorded facts.
nlohmann::json read_training_case(const std::string& name);

/// The case's step with its own loss and options; `more` are further keys of a training file, which
/// come before the case's.
TrainingGraph make_training_case(const std::string& name, const nlohmann::json& facts,
                                 const nlohmann::json& more);

/// Inputs, targets and weights as PyTorch had them; the rest by fill().
void feed_training_case(Execution& execution, const TrainingGraph& step, const std::string& name,
                        const nlohmann::json& facts);

} // namespace monet::test
