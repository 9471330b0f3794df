// Statements, tables and CSV files of a study (study.json) for `monet backward --study`.
#include "report/shared/backward_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <vector>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kGoalPoints = 5;
constexpr double kBatchPoints = 2;

/// Our value of a figure; empty if the study has no such figure or no value for it.
std::optional<double> figure_value(const Json& study, const std::string& id) {
  for (const Json& figure : study.at("figures")) {
    if (figure.at("id") == id && !figure.at("ours").is_null())
      return figure.at("ours").get<double>();
  }
  return std::nullopt;
}

/// Whether the figures rise in the order of `ids`, strictly or at least without falling; null if
/// one is missing.
Json rises(const Json& study, const std::vector<std::string>& ids, bool strictly) {
  std::optional<double> before;
  bool holds = true;
  for (const std::string& id : ids) {
    const std::optional<double> value = figure_value(study, id);
    if (!value)
      return nullptr;
    holds = holds && (!before || *value > *before || (!strictly && *value >= *before));
    before = value;
  }
  return holds;
}

std::vector<std::string> ids_beginning(const Json& study, const std::string& beginning) {
  std::vector<std::string> ids;
  for (const Json& figure : study.at("figures")) {
    const auto id = figure.at("id").get<std::string>();
    if (id.starts_with(beginning) && id.find('_', beginning.size()) == std::string::npos)
      ids.push_back(id);
  }
  return ids;
}

/// Whether the maximum of the figures minus their minimum is below `points`; null if one is
/// missing.
Json varies_less(const Json& study, const std::vector<std::string>& ids, double points) {
  std::optional<double> least, most;
  for (const std::string& id : ids) {
    const std::optional<double> value = figure_value(study, id);
    if (!value)
      return nullptr;
    least = least ? std::min(*least, *value) : *value;
    most = most ? std::max(*most, *value) : *value;
  }
  return least ? Json(*most - *least < points) : Json(nullptr);
}

std::string figure_text(const Json& number, bool is_factor) {
  if (number.is_null())
    return "-";
  return is_factor ? fmt::format("{:.2f}x", number.get<double>())
                   : fmt::format("{:.1f}", number.get<double>());
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csv_number(const Json& number) {
  return number.is_null() ? "" : fmt::format("{:.6g}", number.get<double>());
}

/// Text wrapped at `columns` columns; lines after the first begin with `indent`.
std::string wrapped(const std::string& text, std::size_t columns, const std::string& indent) {
  std::string out;
  std::size_t column = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column > 0 && column + 1 + word.size() > columns) {
      out += "\n" + indent;
      column = indent.size();
    } else if (column > 0) {
      out += " ";
      ++column;
    }
    out += word;
    column += word.size();
    at = end + 1;
  }
  return out + "\n";
}

std::string ranges_table(const Json& study) {
  std::vector<std::vector<std::string>> rows{
      {"reductions in %, shares in %", "paper", "ours", "difference", "lowest", "highest"}};
  for (const Json& figure : study.at("figures")) {
    const bool is_factor = figure.at("unit") == "factor";
    rows.push_back({printable(figure.at("text").get<std::string>()),
                    figure_text(figure.at("paper"), is_factor),
                    figure_text(figure.at("ours"), is_factor),
                    figure_text(figure.at("difference"), is_factor),
                    figure_text(figure.at("lowest"), is_factor),
                    figure_text(figure.at("highest"), is_factor)});
  }
  return aligned_table(rows);
}

std::string study_networks_table(const Json& study) {
  std::vector<std::vector<std::string>> rows{{"reduction in %", "NPU", "interleave", "algorithm-1",
                                              "best-of-three", "partition", "best-seq.", "joint"}};
  for (const Json& network : study.at("networks")) {
    std::vector<std::string> row{clipped(printable(network.at("name").get<std::string>()), 30),
                                 network.at("machine").get<std::string>()};
    const auto reduction = [&](const char* name) {
      const auto& techniques = network.at("techniques");
      row.push_back(techniques.contains(name)
                        ? figure_text(techniques.at(name).at("reduction_percent"), false)
                        : "-");
    };
    for (const char* name : {"interleave", "algorithm-1", "best-of-three"})
      reduction(name);
    row.push_back(figure_text(network.at("partition").at("reduction_percent"), false));
    for (const char* name : {"best-sequential", "joint"})
      reduction(name);
    rows.push_back(std::move(row));
  }
  return aligned_table(rows);
}

} // namespace

Json backward_study_statements(const Json& study) {
  Json rows = Json::array();
  const auto say = [&](const std::string& text, const Json& holds) {
    rows.push_back({{"text", text}, {"holds", holds}});
  };
  for (const std::string machine : {"small", "large"}) {
    say(fmt::format("from Algorithm 1 on each technique adds, {} NPU", machine),
        rises(study, {"algorithm-1_" + machine, "best-of-three_" + machine, "partition_" + machine},
              true));
    say(fmt::format("Algorithm 1 gains more than interleaving alone, {} NPU", machine),
        rises(study, {"interleave_" + machine, "algorithm-1_" + machine}, true));
  }
  say("the small NPU gains more, with partition",
      rises(study, {"partition_large", "partition_small"}, true));
  say("gains grow as bandwidth falls", rises(study, ids_beginning(study, "bandwidth_"), true));
  std::vector<std::string> cores{"partition_large"};
  const std::vector<std::string> more = ids_beginning(study, "cores_");
  cores.insert(cores.end(), more.begin(), more.end());
  say("gains grow with the number of cores", rises(study, cores, true));
  say("the batch changes gains by less than 2 points",
      varies_less(study, ids_beginning(study, "batch_"), kBatchPoints));
  int within = 0;
  int published = 0;
  for (const Json& figure : study.at("figures")) {
    if (figure.at("paper").is_null() || figure.at("unit") == "factor")
      continue;
    ++published;
    if (!figure.at("ours").is_null() &&
        std::abs(figure.at("difference").get<double>()) <= kGoalPoints)
      ++within;
  }
  say(fmt::format("within 5 points of the paper: {} of {} figures", within, published),
      within == published);
  return rows;
}

std::string backward_study_table(const Json& study) {
  std::string text = printable(study.at("name").get<std::string>()) + "\n\n";
  text += ranges_table(study) + "\n" + study_networks_table(study) + "\n";
  for (const Json& statement : study.at("statements")) {
    const Json& holds = statement.at("holds");
    text += fmt::format("{:8}{}\n",
                        holds.is_null()     ? "unknown"
                        : holds.get<bool>() ? "yes"
                                            : "no",
                        statement.at("text").get<std::string>());
  }
  text += "\nwhat the paper leaves open, and what is assumed here (other assumptions make the "
          "ranges):\n";
  for (const Json& one : study.at("ambiguities")) {
    std::string line = fmt::format("  ({}) {}: {}", printable(one.at("letter").get<std::string>()),
                                   printable(one.at("what").get<std::string>()),
                                   printable(one.at("ours").get<std::string>()));
    for (const Json& other : one.at("others"))
      line += "; or " + printable(other.get<std::string>());
    text += "  " + wrapped(line, 116, "      ");
  }
  for (const Json& one : study.at("infeasible"))
    text +=
        wrapped(fmt::format("infeasible on the {} NPU: {}", one.at("machine").get<std::string>(),
                            printable(one.at("why").get<std::string>())),
                118, "  ");
  return text;
}

std::string backward_figures_csv(const Json& study) {
  std::string head = "id,text,unit,paper,ours,difference,lowest,highest";
  std::string lines;
  bool first = true;
  for (const Json& figure : study.at("figures")) {
    lines += fmt::format("{},{},{}", quoted(figure.at("id").get<std::string>()),
                         quoted(figure.at("text").get<std::string>()),
                         figure.at("unit").get<std::string>());
    for (const char* key : {"paper", "ours", "difference", "lowest", "highest"})
      lines += "," + csv_number(figure.at(key));
    for (const Json& assumption : figure.at("assumptions")) {
      lines += "," + csv_number(assumption.at("value"));
      if (first)
        head += "," + quoted(fmt::format("({}) {}", assumption.at("ambiguity").get<std::string>(),
                                         assumption.at("says").get<std::string>()));
    }
    first = false;
    lines += "\n";
  }
  return head + "\n" + lines;
}

std::string backward_networks_csv(const Json& study) {
  std::string text = "machine,network,table,technique,forward_cycles,backward_cycles,"
                     "reduction_percent,dram_bytes,dy_bytes,w_bytes,x_bytes,dx_bytes,dw_bytes\n";
  for (const Json& network : study.at("networks")) {
    const std::string head = fmt::format("{},{},{}", network.at("machine").get<std::string>(),
                                         quoted(network.at("name").get<std::string>()),
                                         quoted(network.at("table").get<std::string>()));
    const auto forward = network.at("forward_latency_cycles").get<std::int64_t>();
    for (const auto& [name, technique] : network.at("techniques").items()) {
      text += fmt::format("{},{},{},{},{},{}", head, name, forward,
                          technique.at("latency_cycles").get<std::int64_t>(),
                          csv_number(technique.at("reduction_percent")),
                          technique.at("dram_bytes").get<std::int64_t>());
      for (const auto& [tensor, bytes] : technique.at("tensor_bytes").items())
        text += fmt::format(",{}", bytes.get<std::int64_t>());
      text += "\n";
    }
    const Json& partition = network.at("partition");
    text += fmt::format("{},best-of-three with partition,{},{},{},,,,,,\n", head, forward,
                        partition.at("latency_cycles").get<std::int64_t>(),
                        csv_number(partition.at("reduction_percent")));
  }
  return text;
}

} // namespace monet
