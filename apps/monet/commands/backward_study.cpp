// monet backward --study: compares the figures of the paper with ours and their ranges. Makes the
// figures from the sheets of backward_sheets.cpp and writes study.json.
#include "commands/backward_sheets.hpp"
#include "pipeline.hpp"
#include "report/shared/backward_result.hpp"
#include "report/shared/text.hpp"

#include "monet/base/files.hpp"
#include "monet/report/result.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace monet::cli {

namespace {

struct StudyFigure {
  std::string id;
  std::string text;
  bool is_factor = false;                                  ///< otherwise a percentage
  double value = std::numeric_limits<double>::quiet_NaN(); ///< NaN if something does not fit
};

double percent(double part) {
  return 100 * part;
}

/// Computes all figures for one set of choices.
class FigureMaker {
public:
  using Tell = std::function<void(std::int64_t, std::int64_t)>;
  /// `techniques` are those of the figures for one core; figures of other techniques are NaN.
  FigureMaker(const Study& study, StudySheets& sheets, const StudyChoices& choices,
              const std::vector<Technique>& techniques, Tell tell)
      : study_(study), sheets_(sheets), choices_(choices), techniques_(techniques),
        tell_(std::move(tell)) {}

  std::vector<StudyFigure> make() {
    for (const char* machine : {"small", "large"})
      add_techniques(machine);
    add_cores();
    add_bandwidths();
    add_batches();
    for (const char* machine : {"small", "large"})
      add_traffic(machine);
    return std::move(figures_);
  }

  const StudySheet& base(const std::string& machine) {
    return sheet(machine, 1, study_.machines.at(machine).gb_per_s,
                 study_.machines.at(machine).batch, techniques_);
  }

  double reduction(double forward, double before, double after) const {
    if (choices_.measure == "speed")
      return percent((forward + before) / (forward + after) - 1);
    return percent(1 - (forward + after) / (forward + before));
  }

private:
  const StudySheet& sheet(const std::string& machine, std::int64_t cores, double gb_per_s,
                          std::int64_t batch,
                          const std::vector<Technique>& techniques = {Technique::sequential}) {
    StudySetting setting;
    setting.machine = machine;
    setting.cores = cores;
    setting.gb_per_s = gb_per_s;
    setting.batch = batch;
    setting.techniques = techniques;
    setting.choices = choices_;
    return sheets_.sheet(setting, tell_);
  }

  void add(std::string id, std::string text, double value, bool is_factor = false) {
    figures_.push_back({std::move(id), std::move(text), is_factor, value});
  }

  /// Average over networks: the mean of the reductions, or the reduction of the total cycles.
  /// `after` returns a network's cycles of the backward pass.
  template <class After>
  double average(const StudySheet& sheet, After after) const {
    double mean = 0;
    double forward = 0, before = 0, later = 0;
    for (const NetworkSheet& network : sheet.networks) {
      const auto f = static_cast<double>(network.forward);
      const auto b = static_cast<double>(network.cycles.at(Technique::sequential));
      const auto a = static_cast<double>(after(network));
      mean += reduction(f, b, a) / static_cast<double>(sheet.networks.size());
      forward += f;
      before += b;
      later += a;
    }
    if (!sheet.infeasible.empty())
      return std::numeric_limits<double>::quiet_NaN();
    return choices_.average == "time" ? reduction(forward, before, later) : mean;
  }

  double average_partitioned(const StudySheet& sheet, double factor = 1) const {
    return average(sheet, [&](const NetworkSheet& network) {
      return factor * static_cast<double>(network.partitioned);
    });
  }

  void add_techniques(const std::string& machine) {
    const StudySheet& sheet = base(machine);
    for (const Technique technique : kStudyTechniques) {
      if (technique == Technique::sequential)
        continue;
      const std::string name(monet::name_of(technique));
      if (technique == Technique::joint) // follows the last step of the paper
        add("partition_" + machine, "best-of-three with partition, " + machine + " NPU",
            average_partitioned(sheet));
      add(name + "_" + machine, name + ", " + machine + " NPU",
          is_left_out(technique)
              ? std::numeric_limits<double>::quiet_NaN()
              : average(sheet, [&](const NetworkSheet& one) { return one.cycles.at(technique); }));
    }
  }

  bool is_left_out(Technique technique) const {
    return std::ranges::find(techniques_, technique) == techniques_.end();
  }

  void add_cores() {
    const StudyMachine& machine = study_.machines.at("large");
    for (const std::int64_t cores : study_.cores) {
      const StudySheet& many = sheet("large", cores, machine.gb_per_s, machine.batch);
      const std::string id = fmt::format("cores_{}", cores);
      add(id, fmt::format("{} cores, exact choice of partition", cores), average_partitioned(many));
      double right = std::numeric_limits<double>::quiet_NaN();
      double guessed = right;
      if (many.guess) {
        right = percent(many.guess->right);
        guessed = average_partitioned(many, many.guess->guessed_cycles /
                                                std::max(1.0, many.guess->exact_cycles));
      }
      add(id + "_neighbours", fmt::format("{} cores, choice by nearest neighbours", cores),
          guessed);
      add(id + "_right", fmt::format("{} cores, guesses as fast as the best choice", cores), right);
      add(id + "_worst", fmt::format("{} cores, the network that gains least", cores), worst(many));
    }
  }

  double worst(const StudySheet& sheet) const {
    double least = std::numeric_limits<double>::quiet_NaN();
    for (const NetworkSheet& network : sheet.networks) {
      if (sheet.infeasible.empty())
        least = std::fmin(least,
                          reduction(static_cast<double>(network.forward),
                                    static_cast<double>(network.cycles.at(Technique::sequential)),
                                    static_cast<double>(network.partitioned)));
    }
    return least;
  }

  void add_bandwidths() {
    const StudyMachine& machine = study_.machines.at("large");
    std::vector<double> bandwidths{machine.gb_per_s};
    bandwidths.insert(bandwidths.end(), study_.bandwidths.begin(), study_.bandwidths.end());
    for (const double gb_per_s : bandwidths) {
      const bool is_base = gb_per_s == machine.gb_per_s;
      add(fmt::format("bandwidth_{:g}", gb_per_s),
          fmt::format("large NPU with {:g} GB/s", gb_per_s),
          average_partitioned(is_base ? base("large")
                                      : sheet("large", 1, gb_per_s, machine.batch)));
    }
  }

  void add_batches() {
    const StudyMachine& machine = study_.machines.at("large");
    std::vector<std::int64_t> batches{machine.batch};
    batches.insert(batches.end(), study_.batches.begin(), study_.batches.end());
    for (const std::int64_t batch : batches) {
      const bool is_base = batch == machine.batch;
      add(fmt::format("batch_{}", batch), fmt::format("large NPU, batch {}", batch),
          average_partitioned(is_base ? base("large")
                                      : sheet("large", 1, machine.gb_per_s, batch)));
    }
  }

  void add_traffic(const std::string& machine) {
    const StudySheet& sheet = base(machine);
    double of_all = 0, of_reads = 0, faster = 0;
    double dlrm = std::numeric_limits<double>::quiet_NaN();
    for (const NetworkSheet& network : sheet.networks) {
      const auto count = static_cast<double>(sheet.networks.size());
      if (!sheet.infeasible.empty())
        break;
      const BackwardTraffic& traffic = network.traffic.at(Technique::sequential);
      const auto dy = static_cast<double>(traffic.dy_read);
      const double reads = dy / static_cast<double>(traffic.reads());
      of_all += dy / static_cast<double>(traffic.bits()) / count;
      of_reads += reads / count;
      faster += static_cast<double>(network.cycles.at(Technique::sequential)) /
                static_cast<double>(network.dy_once) / count;
      if (network.name == "DLRM" && machine == "large")
        dlrm = percent(reads);
    }
    const double none = std::numeric_limits<double>::quiet_NaN();
    const bool fits = sheet.infeasible.empty();
    add("dy_traffic_" + machine, "dY of the backward pass's traffic, " + machine + " NPU",
        fits ? percent(of_all) : none);
    add("dy_reads_" + machine, "dY of what the backward pass reads, " + machine + " NPU",
        fits ? percent(of_reads) : none);
    if (machine == "large")
      add("dy_reads_dlrm", "dY of what DLRM's backward pass reads", dlrm);
    add("dy_once_" + machine, "backward pass if dY were read once, " + machine + " NPU",
        fits ? faster : none, true);
  }

  const Study& study_;
  StudySheets& sheets_;
  const StudyChoices& choices_;
  const std::vector<Technique>& techniques_;
  Tell tell_;
  std::vector<StudyFigure> figures_;
};

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json traffic_of(const BackwardTraffic& traffic) {
  const auto bytes = [](std::int64_t bits) { return (bits + 7) / 8; };
  return {{"dy", bytes(traffic.dy_read)},
          {"w", bytes(traffic.w_read)},
          {"x", bytes(traffic.x_read)},
          {"dx", bytes(traffic.dx_read + traffic.dx_write)},
          {"dw", bytes(traffic.dw_read + traffic.dw_write)}};
}

/// Results of every network on a machine, with every technique.
Json networks_json(const std::string& machine, const StudySheet& sheet, const FigureMaker& maker) {
  Json rows = Json::array();
  for (const NetworkSheet& network : sheet.networks) {
    if (!sheet.infeasible.empty())
      continue;
    const auto before = static_cast<double>(network.cycles.at(Technique::sequential));
    const auto reduced = [&](std::int64_t cycles) {
      return maker.reduction(static_cast<double>(network.forward), before,
                             static_cast<double>(cycles));
    };
    Json techniques = Json::object();
    for (const auto& [technique, cycles] : network.cycles) {
      const BackwardTraffic& traffic = network.traffic.at(technique);
      techniques[std::string(monet::name_of(technique))] = {
          {"latency_cycles", cycles},
          {"reduction_percent", reduced(cycles)},
          {"dram_bytes", (traffic.bits() + 7) / 8},
          {"tensor_bytes", traffic_of(traffic)}};
    }
    rows.push_back({{"machine", machine},
                    {"name", valid_utf8(network.name)},
                    {"table", valid_utf8(network.table)},
                    {"forward_latency_cycles", network.forward},
                    {"techniques", std::move(techniques)},
                    {"partition",
                     {{"latency_cycles", network.partitioned},
                      {"reduction_percent", reduced(network.partitioned)}}},
                    {"bound_latency_cycles", network.bound_cycles},
                    {"bound_dram_bytes", network.bound_bits / 8}});
  }
  return rows;
}

Json figure_json(const StudyFigure& figure, const std::map<std::string, double>& all_published) {
  const auto published = all_published.find(figure.id);
  const double paper = published == all_published.end() ? std::numeric_limits<double>::quiet_NaN()
                                                        : published->second;
  return {{"id", figure.id},
          {"text", figure.text},
          {"unit", figure.is_factor ? "factor" : "percent"},
          {"paper", number_or_null(paper)},
          {"ours", number_or_null(figure.value)},
          {"difference", number_or_null(figure.value - paper)},
          {"lowest", number_or_null(figure.value)},
          {"highest", number_or_null(figure.value)},
          {"assumptions", Json::array()}};
}

void add_assumption(const StudyAssumption& assumption, const std::vector<StudyFigure>& figures,
                    Json& json) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    Json& figure = json.at(i);
    const Json value = number_or_null(figures[i].value);
    figure["assumptions"].push_back({{"ambiguity", valid_utf8(assumption.letter)},
                                     {"says", valid_utf8(assumption.says)},
                                     {"value", value}});
    if (value.is_null())
      continue;
    const auto widen = [&](const char* key, auto better) {
      if (figure[key].is_null() || better(value.get<double>(), figure[key].get<double>()))
        figure[key] = value;
    };
    widen("lowest", std::less<>());
    widen("highest", std::greater<>());
  }
}

Json ambiguities_json(const Study& study) {
  Json rows = Json::array();
  for (const StudyAmbiguity& one : study.ambiguities) {
    Json others = Json::array();
    for (const std::string& other : one.others)
      others.push_back(valid_utf8(other));
    rows.push_back({{"letter", valid_utf8(one.letter)},
                    {"what", valid_utf8(one.what)},
                    {"ours", valid_utf8(one.ours)},
                    {"others", std::move(others)}});
  }
  return rows;
}

Json study_json(const Study& study, StudySheets& sheets, Session& session) {
  const auto total = static_cast<std::int64_t>(study.assumptions.size()) + 1;
  std::int64_t done = 0;
  const auto tell = [&](std::int64_t, std::int64_t) {
    session.progress.search({.phase = "choices", .done = done, .total = total});
  };
  FigureMaker maker(study, sheets, study.choices,
                    study.searches ? kStudyTechniques : kPaperTechniques, tell);
  Json figures = Json::array();
  for (const StudyFigure& figure : maker.make())
    figures.push_back(figure_json(figure, study.published));
  Json networks = Json::array();
  Json infeasible = Json::array();
  for (const char* machine : {"small", "large"}) {
    const StudySheet& base = maker.base(machine);
    for (Json& row : networks_json(machine, base, maker))
      networks.push_back(std::move(row));
    if (!base.infeasible.empty())
      infeasible.push_back({{"machine", machine}, {"why", valid_utf8(base.infeasible)}});
  }
  for (const StudyAssumption& assumption : study.assumptions) {
    ++done;
    FigureMaker other(study, sheets, assumption.choices, kPaperTechniques, tell);
    add_assumption(assumption, other.make(), figures);
  }
  Json json{{"schema_version", 1},
            {"kind", "backward-study"},
            {"name", valid_utf8(study.name)},
            {"figures", std::move(figures)},
            {"networks", std::move(networks)},
            {"ambiguities", ambiguities_json(study)},
            {"infeasible", std::move(infeasible)}};
  json["statements"] = backward_study_statements(json);
  json["provenance"] = provenance_json(provenance_of(study.files));
  return json;
}

} // namespace

int run_backward_study(const BackwardArguments& arguments, Session& session) {
  const Study study = session.stage("read files", [&] { return read_study(arguments.study); });
  StudySheets sheets(study, arguments.jobs);
  const Json json = session.stage("study", [&] { return study_json(study, sheets, session); });
  const std::string table = backward_study_table(json);
  make_folder(arguments.folder);
  write_json(path_in(arguments.folder, "study.json"), json);
  write_file_atomically(path_in(arguments.folder, "figures.csv"), backward_figures_csv(json));
  write_file_atomically(path_in(arguments.folder, "networks.csv"), backward_networks_csv(json));
  write_file_atomically(path_in(arguments.folder, "study.txt"), table);
  const std::string page = path_in(arguments.folder, "study.html");
  write_file_atomically(page, page_of(json));
  write_output(arguments.json, json, table + "\npage: " + printable(page) + "\n");
  return kExitOk;
}

} // namespace monet::cli
