// Writes result.json (docs/train.schema.json), the table and the CSV file of `monet train`.
#include "base/shared/text.hpp"
#include "report/shared/text.hpp"
#include "report/shared/train_result.hpp"
#include "report/shared/written.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

namespace monet {

using Json = nlohmann::ordered_json;

namespace {

/// Number as JSON; infinities and NaN, which JSON lacks, are strings.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}
Json number(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}

/// Mean and standard deviation of the runs' values; the deviation is null for a single run.
Json summary(const std::vector<double>& values) {
  if (values.empty())
    return nullptr;
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  std::optional<double> deviation;
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values)
      squares += (value - mean) * (value - mean);
    const bool are_equal = std::ranges::count(values, values.front()) == std::ssize(values);
    deviation = are_equal ? 0 : std::sqrt(squares / (count - 1)); // exact 0 for equal values
  }
  return {{"mean", number(mean)}, {"deviation", number(deviation)}};
}

std::optional<double> final_loss(const TrainedRun& run, std::int64_t steps_of_epoch) {
  const std::vector<StepRecord>& steps = run.history.steps;
  if (steps.empty())
    return std::nullopt;
  const auto last = std::min(static_cast<std::int64_t>(steps.size()), steps_of_epoch);
  double sum = 0;
  for (auto step = steps.end() - last; step != steps.end(); ++step)
    sum += step->loss;
  return sum / static_cast<double>(last);
}

/// Mean share of flushed gradients over the steps that rounded gradients; empty without such steps.
std::optional<double> flushed_gradients(const RunHistory& history) {
  double sum = 0;
  std::int64_t count = 0;
  for (const StepRecord& step : history.steps) {
    sum += step.flushed.value_or(0);
    count += step.flushed ? 1 : 0;
  }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

Json non_finite_json(const NonFiniteRecord& record, const Graph& graph) {
  Json json{{"step", record.step},
            {"operator", nullptr},
            {"op_type", nullptr},
            {"phase", nullptr},
            {"tensor", nullptr}};
  if (record.op && record.op->index() < graph.operators().size()) {
    const Operator& op = graph.op(*record.op);
    json["operator"] = valid_utf8(op.name);
    json["op_type"] = valid_utf8(op.op_type);
    json["phase"] = name_of(op.phase);
  }
  if (record.tensor && record.tensor->index() < graph.tensors().size())
    json["tensor"] = valid_utf8(graph.tensor(*record.tensor).name);
  return json;
}

Json run_json(const TrainedRun& run, const TrainSetup& setup) {
  Json tests = Json::array();
  for (const TestRecord& test : run.history.tests)
    tests.push_back(
        {{"step", test.step}, {"loss", number(test.loss)}, {"accuracy", number(test.accuracy)}});
  Json wrong = Json::array();
  for (const NonFiniteRecord& record : run.history.non_finite)
    wrong.push_back(non_finite_json(record, setup.step.graph));
  const auto skipped = std::ranges::count_if(run.history.steps, &StepRecord::skipped);
  return {{"seed", run.seed},
          {"steps", run.history.steps.size()},
          {"is_over", run.is_over},
          {"skipped_steps", skipped},
          {"flushed_gradients", number(flushed_gradients(run.history))},
          {"final_loss", number(final_loss(run, setup.length.steps_of_epoch))},
          {"tests", std::move(tests)},
          {"non_finite", std::move(wrong)}};
}

Json data_json(const DataOptions& options, const TrainingData& data) {
  constexpr std::array<const char*, 4> kFormats{"cifar10", "idx", "npy", "generated"};
  const ImageShape& shape = data.train.shape;
  return {{"format", kFormats.at(static_cast<std::size_t>(options.format))},
          {"train", data.train.size()},
          {"test", data.test.size()},
          {"classes", data.train.classes},
          {"shape", {shape.channels, shape.height, shape.width}}};
}

Json variant_json(const TrainedVariant& variant) {
  const TrainSetup& setup = *variant.setup;
  std::vector<double> losses, accuracies;
  double seconds = 0;
  std::int64_t timed = 0;
  Json runs = Json::array();
  for (const TrainedRun& run : variant.runs) {
    runs.push_back(run_json(run, setup));
    if (const auto loss = final_loss(run, setup.length.steps_of_epoch); loss && run.is_over)
      losses.push_back(*loss);
    if (run.is_over && !run.history.tests.empty())
      accuracies.push_back(run.history.tests.back().accuracy);
    seconds += run.seconds;
    timed += run.timed_steps;
  }
  return {{"name", setup.recipe->name},
          {"data", data_json(*variant.data, *setup.data)},
          {"arithmetic", name_of(setup.recipe->arithmetic)},
          {"parameters", trained_count(setup.step)},
          {"images_per_step", setup.batch * setup.step.micro_batches},
          {"steps_per_epoch", setup.length.steps_of_epoch},
          {"steps", setup.length.steps},
          {"final_loss", summary(losses)},
          {"test_accuracy", summary(accuracies)},
          {"seconds_per_step", timed > 0 ? Json(seconds / static_cast<double>(timed)) : Json()},
          {"runs", std::move(runs)}};
}

/// Mean and deviation as text: "0.123 ± 0.004".
std::string with_spread(const Json& summary, double scale, const char* unit) {
  if (summary.is_null())
    return "-";
  const Json& mean = summary.at("mean");
  if (!mean.is_number())
    return mean.get<std::string>();
  std::string text = fmt::format("{:.4g}", mean.get<double>() * scale);
  if (summary.at("deviation").is_number())
    text += fmt::format(" ± {:.2g}", summary.at("deviation").get<double>() * scale);
  return text + unit;
}

/// Mean share of flushed gradients over a variant's runs, as text.
std::string flushed_cell(const Json& variant) {
  std::vector<double> shares;
  for (const Json& run : variant.at("runs")) {
    if (run.at("flushed_gradients").is_number())
      shares.push_back(run.at("flushed_gradients").get<double>());
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  return shares.empty() ? "-"
                        : fmt::format("{:.2g} %", 100 * sum / static_cast<double>(shares.size()));
}

std::string non_finite_lines(const Json& variant) {
  std::string text;
  for (const Json& run : variant.at("runs")) {
    const Json& all = run.at("non_finite");
    if (all.empty())
      continue;
    const Json& first = all.front();
    text += fmt::format("{} seed {}: step {}: ", variant.at("name").get<std::string>(),
                        run.at("seed").get<std::uint64_t>(), first.at("step").get<std::int64_t>());
    if (first.at("tensor").is_null())
      text += "a number that is not finite, which is in no tensor any more";
    else if (first.at("operator").is_null())
      text += fmt::format("'{}' was not finite before the step",
                          printable(first.at("tensor").get<std::string>()));
    else
      text += fmt::format("'{}' ({}, {}) computed the first number that is not finite, in '{}'",
                          printable(first.at("operator").get<std::string>()),
                          printable(first.at("op_type").get<std::string>()),
                          first.at("phase").get<std::string>(),
                          printable(first.at("tensor").get<std::string>()));
    text += all.size() > 1 ? fmt::format("; {} such steps\n", all.size()) : "\n";
  }
  return text;
}

} // namespace

Json train_json(const std::string& name, std::span<const TrainedVariant> variants,
                const Provenance& provenance) {
  Json rows = Json::array();
  bool interrupted = false;
  for (const TrainedVariant& variant : variants) {
    rows.push_back(variant_json(variant));
    interrupted = interrupted || variant.runs.size() < variant.setup->recipe->seeds.size() ||
                  !std::ranges::all_of(variant.runs, &TrainedRun::is_over);
  }
  return written(ResultSchema::train, {{"schema_version", 1},
                                       {"kind", "train"},
                                       {"name", valid_utf8(name)},
                                       {"interrupted", interrupted},
                                       {"variants", std::move(rows)},
                                       {"provenance", provenance_json(provenance)}});
}

std::string train_table(const Json& result) {
  std::vector<std::vector<std::string>> rows{{"variant", "data", "runs", "steps", "final loss",
                                              "test accuracy", "skipped", "seconds a step"}};
  std::vector<std::string> flushed{"gradients flushed"};
  std::string wrong;
  for (const Json& variant : result.at("variants")) {
    std::int64_t over = 0, skipped = 0;
    for (const Json& run : variant.at("runs")) {
      over += run.at("is_over").get<bool>() ? 1 : 0;
      skipped += run.at("skipped_steps").get<std::int64_t>();
    }
    const Json& seconds = variant.at("seconds_per_step");
    rows.push_back({variant.at("name").get<std::string>(),
                    variant.at("data").at("format").get<std::string>(), std::to_string(over),
                    group_digits(variant.at("steps").get<std::int64_t>()),
                    with_spread(variant.at("final_loss"), 1, ""),
                    with_spread(variant.at("test_accuracy"), 100, " %"), group_digits(skipped),
                    seconds.is_null() ? "-" : fmt::format("{:.3g}", seconds.get<double>())});
    flushed.push_back(flushed_cell(variant));
    wrong += non_finite_lines(variant);
  }
  if (std::any_of(flushed.begin() + 1, flushed.end(),
                  [](const std::string& cell) { return cell != "-" && cell != "0 %"; })) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i].insert(rows[i].end() - 1, flushed[i]);
  }
  return aligned_table(rows) + wrong;
}

std::string curves_csv(std::span<const TrainedVariant> variants) {
  std::string text = "variant,seed,step,epoch,rate,loss,accuracy,scale,skipped,flushed\n";
  const auto cell = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (const TrainedVariant& variant : variants) {
    const auto of_epoch = static_cast<std::size_t>(variant.setup->length.steps_of_epoch);
    for (const TrainedRun& run : variant.runs) {
      for (std::size_t i = 0; i < run.history.steps.size(); ++i) {
        const StepRecord& step = run.history.steps[i];
        text +=
            fmt::format("{},{},{},{},{},{},{},{},{},{}\n", variant.setup->recipe->name, run.seed,
                        i + 1, i / of_epoch + 1, step.rate, step.loss, cell(step.accuracy),
                        cell(step.scale), step.skipped ? 1 : 0, cell(step.flushed));
      }
    }
  }
  return text;
}

} // namespace monet
