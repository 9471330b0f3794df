// JSON Schemas of the results, docs/*.schema.json, embedded into developer builds (embed.cmake).
#pragma once

#include <string_view>

namespace monet::schemas {

extern const std::string_view kBackward;
extern const std::string_view kCluster;
extern const std::string_view kComparison;
extern const std::string_view kExplain;
extern const std::string_view kExplore;
extern const std::string_view kFormats;
extern const std::string_view kOptimise;
extern const std::string_view kResult;
extern const std::string_view kTrain;

} // namespace monet::schemas
