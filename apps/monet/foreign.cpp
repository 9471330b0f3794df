#include "foreign.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/text.hpp"
#include "monet/report/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

namespace monet::cli {

namespace {

std::string_view name_of(GradientOf of) {
  return of == GradientOf::weight ? "ConvGradWeight" : "ConvGradInput";
}

} // namespace

Graph recognise(Graph network, bool differentiate, ForeignReport& report) {
  Graph step = recognise_training_step(network, report);
  if (!report.is_training_step)
    return network;
  if (differentiate) {
    throw InputError({network.origin, 0, 0, ""},
                     "the network is a training step already, with gradients and updates",
                     "leave the training options out");
  }
  return step;
}

nlohmann::ordered_json foreign_json(const ForeignReport& report) {
  nlohmann::ordered_json recognised = nlohmann::ordered_json::array();
  for (const RecognisedGradient& gradient : report.recognised) {
    recognised.push_back({{"node", valid_utf8(gradient.node)},
                          {"as", name_of(gradient.of)},
                          {"replaces_nodes", gradient.replaced},
                          {"proven_equal", gradient.deviation.empty()},
                          {"deviation", gradient.deviation}});
  }
  nlohmann::ordered_json kept = nlohmann::ordered_json::array();
  for (const KeptOperator& op : report.kept)
    kept.push_back({{"node", valid_utf8(op.node)}, {"why", valid_utf8(op.why)}});
  return {{"recognised", std::move(recognised)}, {"costed_as_they_stand", std::move(kept)}};
}

std::string foreign_table(const ForeignReport& report) {
  std::map<std::pair<std::string, std::string>, std::pair<int, int>> counts; // gradients, nodes
  for (const RecognisedGradient& gradient : report.recognised) {
    const std::string how =
        gradient.deviation.empty() ? "proven equal" : "meant, but: " + gradient.deviation;
    auto& [gradients, nodes] = counts[{std::string(name_of(gradient.of)), how}];
    ++gradients;
    nodes += gradient.replaced;
  }
  std::vector<std::vector<std::string>> rows{{"recognised", "count", "nodes", "how"}};
  for (const auto& [key, count] : counts)
    rows.push_back({key.first, group_digits(count.first), group_digits(count.second), key.second});
  std::string text = "\n" + aligned_table(rows);
  for (const KeptOperator& op : report.kept)
    text += fmt::format("costed as it stands: {}: {}\n", printable(op.node), printable(op.why));
  return text;
}

} // namespace monet::cli
