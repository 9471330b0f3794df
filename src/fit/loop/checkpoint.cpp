// Writes, finds and reads checkpoints of a training run: folders with tensors and run state.
// The training loop calls it.
#include "monet/fit/checkpoint.hpp"

#include "base/shared/npy.hpp"
#include "base/shared/text.hpp"
#include "fit/loop/initial.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>

namespace monet {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";
constexpr std::string_view kAside = ".tmp";  ///< incomplete, or being removed
constexpr std::string_view kBefore = ".old"; ///< complete, superseded by one of the same step
constexpr std::int64_t kVersion = 2;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Runs a change of the file system; OutputError with the path if it fails.
template <class Change>
void change(const std::string& place, Change change_it) {
  std::error_code error;
  change_it(error);
  if (error)
    throw OutputError(place, "cannot be written: " + error.message());
}

/// Table of numbers; all rows have the same length.
struct Table {
  std::int64_t columns = 0;
  std::vector<double> numbers;

  void add(std::initializer_list<double> row) { numbers.insert(numbers.end(), row); }
  std::int64_t rows() const { return static_cast<std::int64_t>(numbers.size()) / columns; }
  double at(std::int64_t row, std::int64_t column) const {
    return numbers[static_cast<std::size_t>(row * columns + column)];
  }
  std::optional<double> known_at(std::int64_t row, std::int64_t column) const {
    return std::isnan(at(row, column)) ? std::nullopt : std::optional(at(row, column));
  }
};

void write_table(const std::string& path, const Table& table) {
  write_file_atomically(path, npy_bytes(std::array{table.rows(), table.columns}, table.numbers));
}

Table read_table(const std::string& path, std::int64_t columns) {
  const NpyArray array = read_npy(path);
  if (array.shape.size() != 2 || array.shape[1] != columns)
    throw InputError({path}, fmt::format("is not a table of {} columns", columns));
  return {columns, array.numbers()};
}

constexpr std::int64_t kStepColumns = 6;
constexpr std::int64_t kTestColumns = 3;
constexpr std::int64_t kNonFiniteColumns = 3;

void write_history(const std::string& folder, const RunHistory& history) {
  Table steps{kStepColumns, {}};
  for (const StepRecord& step : history.steps)
    steps.add({step.rate, step.loss, step.accuracy.value_or(kNone), step.scale.value_or(kNone),
               step.skipped ? 1.0 : 0.0, step.flushed.value_or(kNone)});
  write_table(folder + "/steps.npy", steps);
  Table tests{kTestColumns, {}};
  for (const TestRecord& test : history.tests)
    tests.add({static_cast<double>(test.step), test.loss.value_or(kNone), test.accuracy});
  write_table(folder + "/tests.npy", tests);
  Table wrong{kNonFiniteColumns, {}};
  const auto number = [](const auto& id) { return id ? static_cast<double>(id->index()) : kNone; };
  for (const NonFiniteRecord& record : history.non_finite)
    wrong.add({static_cast<double>(record.step), number(record.op), number(record.tensor)});
  write_table(folder + "/non_finite.npy", wrong);
}

/// Converts a table entry to a count or an index.
std::size_t whole_number(const std::string& path, double value) {
  constexpr double kMax = 1e15;
  if (!(value >= 0 && value < kMax) || value != std::floor(value))
    throw InputError({path},
                     fmt::format("{} is not a number of a step, operator or tensor", value));
  return static_cast<std::size_t>(value);
}

RunHistory read_history(const std::string& folder) {
  RunHistory history;
  const Table steps = read_table(folder + "/steps.npy", kStepColumns);
  for (std::int64_t i = 0; i < steps.rows(); ++i)
    history.steps.push_back({steps.at(i, 0), steps.at(i, 1), steps.known_at(i, 2),
                             steps.known_at(i, 3), steps.at(i, 4) != 0.0, steps.known_at(i, 5)});
  const std::string tests_file = folder + "/tests.npy";
  const Table tests = read_table(tests_file, kTestColumns);
  for (std::int64_t i = 0; i < tests.rows(); ++i)
    history.tests.push_back({static_cast<std::int64_t>(whole_number(tests_file, tests.at(i, 0))),
                             tests.known_at(i, 1), tests.at(i, 2)});
  const std::string wrong_file = folder + "/non_finite.npy";
  const Table wrong = read_table(wrong_file, kNonFiniteColumns);
  for (std::int64_t i = 0; i < wrong.rows(); ++i) {
    NonFiniteRecord record;
    record.step = static_cast<std::int64_t>(whole_number(wrong_file, wrong.at(i, 0)));
    if (const auto op = wrong.known_at(i, 1))
      record.op = OpId(whole_number(wrong_file, *op));
    if (const auto tensor = wrong.known_at(i, 2))
      record.tensor = TensorId(whole_number(wrong_file, *tensor));
    history.non_finite.push_back(record);
  }
  return history;
}

/// Number of steps in a complete checkpoint, from the folder's name.
std::optional<std::int64_t> steps_in(std::string_view name) {
  if (name.ends_with(kBefore))
    name.remove_suffix(kBefore.size());
  if (!name.starts_with(kPrefix))
    return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const auto steps = number_in<std::int64_t>(name);
  return steps && *steps >= 0 ? steps : std::nullopt;
}

struct Entry {
  std::int64_t steps = 0;
  bool replaced = false; ///< superseded by another of the same step
  fs::path path;
};

/// Complete checkpoints in a folder, newest first.
std::vector<Entry> whole_ones(const std::string& folder) {
  std::vector<Entry> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (const auto steps = steps_in(name))
      found.push_back({*steps, name.ends_with(kBefore), entry.path()});
  }
  std::ranges::sort(found, [](const Entry& a, const Entry& b) {
    return a.steps != b.steps ? a.steps > b.steps : a.replaced < b.replaced;
  });
  return found;
}

/// Removes a checkpoint: first renames the folder, then deletes its files.
void remove_folder(const fs::path& path) {
  fs::path aside = path;
  if (!path.string().ends_with(kAside)) {
    aside += kAside;
    change(path.string(), [&](std::error_code& error) { fs::remove_all(aside, error); });
    change(path.string(), [&](std::error_code& error) { fs::rename(path, aside, error); });
  }
  change(aside.string(), [&](std::error_code& error) { fs::remove_all(aside, error); });
}

void write_contents(const std::string& folder, const RunState& state, const std::string& identity) {
  change(folder,
         [&](std::error_code& error) { fs::create_directories(folder + "/tensors", error); });
  for (const SavedTensor& tensor : state.tensors)
    write_file_atomically(folder + "/tensors/" + file_name_of(tensor.name),
                          npy_bytes(tensor.shape, tensor.numbers));
  write_history(folder, state.history);
  write_file_atomically(
      folder + "/checkpoint.yaml",
      fmt::format("version: {}\nexperiment: {}\nupdates: {}\nadvances: {}\nended: {}\n", kVersion,
                  identity, state.updates, state.advances, state.ended));
}

/// Name of the tensor that a file in tensors/ holds.
std::string tensor_named(const fs::path& file) {
  const std::string stem = file.stem().string();
  std::string name;
  for (std::size_t i = 0; i < stem.size(); ++i) {
    unsigned code = 0;
    if (stem[i] == '%' && i + 2 < stem.size() &&
        std::from_chars(&stem[i + 1], &stem[i + 1] + 2, code, 16).ec == std::errc{}) {
      name += static_cast<char>(code);
      i += 2;
    } else {
      name += stem[i];
    }
  }
  return name;
}

RunState read_contents(const std::string& folder, const std::string& identity) {
  const YamlNode root = load_yaml(folder + "/checkpoint.yaml");
  ProblemList problems;
  YamlMap map(root, problems);
  RunState state;
  const std::int64_t version = map.require_integer("version");
  const std::string of = map.require_string("experiment");
  state.updates = map.require_integer("updates");
  state.advances = map.require_integer("advances");
  state.ended = map.boolean_or("ended", false);
  map.finish();
  problems.throw_if_any();
  if (version != kVersion || state.updates < 0 || state.advances < 0)
    throw InputError(root.where, "is not a checkpoint that this version can continue");
  if (of != identity)
    throw InputError(root.where, "was made by another experiment or network than the one given",
                     "leave out --resume to start again, or name another folder with -o");
  state.history = read_history(folder);
  std::error_code ignored;
  for (const fs::directory_entry& file : fs::directory_iterator(folder + "/tensors", ignored)) {
    NpyArray array = read_npy(file.path().string());
    state.tensors.push_back({tensor_named(file.path()), array.shape, array.numbers()});
  }
  return state;
}

} // namespace

void CheckpointFolder::write(const RunState& state, std::int64_t keep) const {
  const std::string path = fmt::format("{}/{}{:08}", path_, kPrefix, state.history.steps.size());
  const std::string aside = path + std::string(kAside);
  const std::string before = path + std::string(kBefore);
  change(aside, [&](std::error_code& error) { fs::remove_all(aside, error); });
  write_contents(aside, state, identity_);
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    change(before, [&](std::error_code& error) { fs::remove_all(before, error); });
    change(path, [&](std::error_code& error) { fs::rename(path, before, error); });
  }
  change(path, [&](std::error_code& error) { fs::rename(aside, path, error); });
  std::int64_t kept = 0;
  for (const Entry& entry : whole_ones(path_)) {
    if (entry.replaced || kept == keep)
      remove_folder(entry.path);
    else
      ++kept;
  }
}

auto CheckpointFolder::newest() const -> std::optional<Found> {
  const std::vector<Entry> found = whole_ones(path_);
  if (found.empty())
    return std::nullopt;
  const std::string path = found.front().path.string();
  RunState state = read_contents(path, identity_);
  if (static_cast<std::int64_t>(state.history.steps.size()) != found.front().steps)
    throw InputError({path}, fmt::format("has a history of {} steps", state.history.steps.size()));
  return Found{path, std::move(state)};
}

void CheckpointFolder::remove_unfinished() const {
  std::vector<fs::path> left;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kAside))
      left.push_back(entry.path());
  }
  for (const fs::path& folder : left)
    remove_folder(folder);
}

void CheckpointFolder::clear() const {
  std::error_code ignored;
  if (!fs::exists(path_, ignored))
    return;
  for (const Entry& entry : whole_ones(path_))
    remove_folder(entry.path);
  change(path_, [&](std::error_code& error) { fs::remove_all(path_, error); });
}

} // namespace monet
