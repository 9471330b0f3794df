// The cases of tests/fixtures/gradients/ as ONNX models. The format is described in
// tools/README.md.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace monet::test {

/// Serialised ModelProto of one case. What gets a gradient is an initialiser without data, and so
/// a parameter; other tensors are graph inputs, and constants are initialisers with data.
std::string model_bytes(const nlohmann::json& test_case);

/// The numbers of one input of a case (an element of its "inputs") for the case's seed.
std::vector<double> numbers_of(const nlohmann::json& input, std::uint64_t seed);

} // namespace monet::test
