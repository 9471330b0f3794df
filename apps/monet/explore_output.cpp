// What monet explore writes: explore.json and the table.
#include "explore.hpp"
#include "version.hpp"

#include "monet/base/files.hpp"
#include "monet/report/explore_result.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace monet::cli {

void write_exploration(const ExploreArguments& arguments, const Exploration& exploration,
                       Session&) {
  Provenance provenance;
  provenance.version = version();
  provenance.git_hash = git_hash();
  provenance.seed = exploration.strategy.seed;
  for (const std::string& file : exploration.space.files)
    provenance.input_hashes[std::filesystem::path(file).filename().string()] =
        content_hash(read_file(file));
  const nlohmann::ordered_json json = explore_json(
      exploration.space, exploration.result,
      {exploration.strategy.name, exploration.strategy.seed, exploration.strategy.budget},
      provenance);
  if (!arguments.json.empty())
    write_json(arguments.json, json);
  if (arguments.json != "-")
    print_result(exploration_table(json));
}

} // namespace monet::cli
