// One network of tests/fixtures/networks/: its model at the recorded size, the numbers that go in,
// and steps of training. The files are written by tools/make_network_fixtures.py.
#pragma once

#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace monet::test {

inline constexpr const char* kNetworkFixtures = MONET_SOURCE_DIR "/tests/fixtures/networks/";

nlohmann::json read_network_fixture(const std::string& network);

/// The file's network with the recorded size of images and without dropout.
Graph read_recorded_network(const nlohmann::json& fixture);

/// Options as a training file would give them; `optimizer` as in the fixture, `more` for the rest.
TrainingOptions options_of(const std::string& loss, const nlohmann::json& optimizer,
                           const nlohmann::json& more = nlohmann::json::object());

/// Weights, running statistics, data and targets of the fixture; states and the like by fill().
void feed(Execution& execution, const TrainingGraph& step, const nlohmann::json& fixture);

} // namespace monet::test
