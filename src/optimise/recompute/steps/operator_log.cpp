// Reads operator logs of recorded training runs as recomputation problems; log_search.cpp plans
// them.
#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/ids.hpp"
#include "monet/optimise/log_search.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace monet {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr std::size_t kLongestLine = std::size_t{1} << 24;
constexpr std::size_t kMaxResults = 4096;                 // per call; they are searched linearly
constexpr std::int64_t kMaxTotal = std::int64_t{1} << 53; // exact as doubles

/// One line of the log; every error message names it.
class Line {
public:
  Line(std::string_view text, SourceLoc where) : where_(std::move(where)) {
    // The parser stacks nested brackets, while valid lines have few, so deeply nested lines are
    // rejected before they cost memory.
    constexpr std::ptrdiff_t kMaxBrackets = 8;
    if (text.size() > kLongestLine || std::ranges::count(text, '{') > kMaxBrackets ||
        std::ranges::count(text, '[') > kMaxBrackets)
      fail("this is not a line of an operator log");
    values_ = json::parse(text.begin(), text.end(), nullptr, false);
    if (!values_.is_object())
      fail("every line of an operator log is a JSON object");
  }

  [[noreturn]] void fail(std::string_view what) const { throw InputError(where_, what); }
  int number() const { return where_.line; }

  const std::string& text(const char* key) const {
    const json& value = at(key);
    if (!value.is_string())
      fail(fmt::format("'{}' must be a string", key));
    return value.get_ref<const std::string&>();
  }
  /// Integer of at least -1, as a number or as digits in a string.
  std::int64_t whole(const json& value, const char* key) const {
    std::int64_t number = -2;
    if (value.is_number_unsigned()) {
      number = static_cast<std::int64_t>(
          std::min(value.get<std::uint64_t>(), static_cast<std::uint64_t>(kMaxTotal) + 1));
    } else if (value.is_number_integer()) {
      number = value.get<std::int64_t>();
    } else if (value.is_string()) {
      const std::string& digits = value.get_ref<const std::string&>();
      const auto [end, code] =
          std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (code != std::errc{} || end != digits.data() + digits.size())
        number = code == std::errc::result_out_of_range ? kMaxTotal + 1 : -2;
    }
    if (number < -1 || number > kMaxTotal)
      fail(fmt::format("'{}' must be a whole number up to 2^53", key));
    return number;
  }
  std::int64_t amount(const char* key) const {
    const std::int64_t number = whole(at(key), key);
    if (number < 0)
      fail(fmt::format("'{}' must not be negative", key));
    return number;
  }
  std::int64_t index(const char* key) const { return whole(at(key), key); }
  const json& list(const char* key) const {
    const json& value = at(key);
    if (!value.is_array())
      fail(fmt::format("'{}' must be a list", key));
    return value;
  }
  const std::string& name_in(const json& value, const char* key) const {
    if (!value.is_string())
      fail(fmt::format("'{}' must be a list of names", key));
    return value.get_ref<const std::string&>();
  }

private:
  const json& at(const char* key) const {
    const auto found = values_.find(key);
    if (found == values_.end())
      fail(fmt::format("'{}' is missing", key));
    return *found;
  }

  json values_;
  SourceLoc where_;
};

/// Replays the log's instructions and builds the problem.
class LogReplay {
public:
  void play(const Line& line) {
    const std::string& instruction = line.text("INSTRUCTION");
    if (instruction == "MEMORY")
      return memory(line);
    if (instruction == "ALIAS")
      return alias(line);
    finish(line);
    if (instruction == "CALL")
      call(line);
    else if (instruction == "MUTATE")
      mutate(line);
    else if (instruction == "RELEASE")
      release(line);
    else if (instruction == "COPY")
      bind(line, line.text("DST"), named(line, line.text("SRC")));
    else if (instruction == "COPY_FROM" || instruction == "COPYFROM")
      copy_from(line);
    else if (instruction == "CONSTANT")
      expect(line, {}, {line.text("NAME")});
    else if (instruction == "ANNOTATE")
      annotate(line);
    else
      line.fail(fmt::format("unknown instruction '{}'", instruction.substr(0, 40)));
  }

  OperatorLog end(const Line* last) {
    if (last != nullptr)
      finish(*last);
    const auto ops = static_cast<std::uint32_t>(log_.problem.ops.size());
    log_.released.assign(log_.problem.buffers.size(), ops);
    for (const Storage& storage : storages_) {
      if (storage.buffer == kNone)
        continue;
      RecomputeProblem::Buffer& buffer = log_.problem.buffers[storage.buffer];
      buffer.kept = buffer.producer.has_value() && storage.names > 0;
      if (buffer.producer && !buffer.kept)
        log_.released[storage.buffer] = storage.released;
    }
    log_.recorded_peak_bytes += earlier_bytes_;
    return std::move(log_);
  }

private:
  struct Storage {
    std::string name; ///< first name
    std::int64_t bytes = 0;
    std::uint32_t buffer = kNone; ///< kNone if made before the step and not used so far
    std::int64_t names = 0;       ///< number of names that refer to it
    std::uint32_t released = 0;   ///< operator after which its last name was released
    bool given = false;           ///< constant, or made before the step
  };
  /// Name whose bytes are not known yet.
  struct Result {
    std::string name;
    std::int64_t bytes = -1;
    std::int64_t alias = -1; ///< index of the argument with shared storage
    bool has_alias = false;
  };

  RecomputeProblem& problem() { return log_.problem; }

  std::uint32_t named(const Line& line, const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end())
      line.fail(fmt::format("'{}' is not a name that is in use here", name.substr(0, 40)));
    return found->second;
  }
  void bind(const Line& line, const std::string& name, std::uint32_t storage) {
    if (!names_.emplace(name, storage).second)
      line.fail(fmt::format("'{}' is in use already", name.substr(0, 40)));
    ++storages_[storage].names;
  }
  void drop(std::uint32_t id) {
    Storage& storage = storages_[id];
    if (--storage.names > 0 || storage.given)
      return;
    storage.released = static_cast<std::uint32_t>(problem().ops.size()) - 1;
    live_ -= storage.bytes;
  }
  std::uint32_t add_storage(const Line& line, const std::string& name, std::int64_t bytes,
                            std::optional<std::uint32_t> producer) {
    bytes_in_all_ += bytes;
    if (bytes_in_all_ > kMaxTotal)
      line.fail("more than 2^53 bytes in all");
    live_ += bytes;
    log_.recorded_peak_bytes = std::max(log_.recorded_peak_bytes, live_);
    Storage storage{name, bytes, kNone, 0, 0, !producer};
    storage.buffer = static_cast<std::uint32_t>(problem().buffers.size());
    problem().buffers.push_back({name, bytes, producer, false});
    storages_.push_back(std::move(storage));
    return static_cast<std::uint32_t>(storages_.size()) - 1;
  }
  /// Buffer of a storage that the step uses.
  std::uint32_t buffer_of(std::uint32_t id) {
    Storage& storage = storages_[id];
    if (storage.buffer == kNone) {
      storage.buffer = static_cast<std::uint32_t>(problem().buffers.size());
      problem().buffers.push_back({storage.name, storage.bytes, std::nullopt, false});
      earlier_bytes_ += storage.bytes;
    }
    return storage.buffer;
  }

  /// Expects the MEMORY and ALIAS lines of these names next.
  void expect(const Line& line, std::vector<std::uint32_t> arguments,
              const std::vector<std::string>& names) {
    constant_ = line.text("INSTRUCTION") == "CONSTANT";
    arguments_ = std::move(arguments);
    for (const std::string& name : names)
      results_.push_back({name});
  }
  Result& expected(const Line& line) {
    const std::string& name = line.text("NAME");
    const auto found = std::ranges::find(results_, name, &Result::name);
    if (found == results_.end())
      line.fail(
          fmt::format("'{}' is not a result of the previous instruction", name.substr(0, 40)));
    return *found;
  }
  void memory(const Line& line) {
    Result& result = expected(line);
    if (result.bytes >= 0)
      line.fail("a second MEMORY of the same name");
    result.bytes = line.amount("MEMORY");
  }
  void alias(const Line& line) {
    Result& result = expected(line);
    if (result.has_alias)
      line.fail("a second ALIAS of the same name");
    result.alias = line.index("ALIAS");
    result.has_alias = true;
    if (result.alias >= static_cast<std::int64_t>(arguments_.size()))
      line.fail("'ALIAS' must be -1 or the place of an argument");
  }
  /// Assigns storage to the expected names. `line` is the first line after theirs.
  void finish(const Line& line) {
    for (const Result& result : results_) {
      if (result.bytes < 0)
        line.fail(fmt::format("MEMORY of '{}' is missing before this", result.name.substr(0, 40)));
      if (result.alias >= 0) {
        bind(line, result.name, arguments_[static_cast<std::size_t>(result.alias)]);
        continue;
      }
      std::optional<std::uint32_t> producer;
      if (!constant_)
        producer = static_cast<std::uint32_t>(problem().ops.size()) - 1;
      const std::uint32_t id = add_storage(line, result.name, result.bytes, producer);
      if (producer)
        problem().ops.back().writes.push_back(storages_[id].buffer);
      bind(line, result.name, id);
    }
    results_.clear();
  }

  /// Adds the operator with its inputs; returns its arguments' storages.
  std::vector<std::uint32_t> add_operator(const Line& line) {
    RecomputeProblem::Op op;
    op.name = fmt::format("{}:{}", line.text("NAME"), line.number());
    op.cost = line.amount("TIME");
    cost_in_all_ += op.cost;
    if (cost_in_all_ > kMaxTotal)
      line.fail("more than 2^53 ns in all");
    std::vector<std::uint32_t> arguments;
    for (const json& argument : line.list("ARGS")) {
      arguments.push_back(named(line, line.name_in(argument, "ARGS")));
      op.reads.push_back(buffer_of(arguments.back()));
    }
    std::ranges::sort(op.reads);
    op.reads.erase(std::unique(op.reads.begin(), op.reads.end()), op.reads.end());
    problem().ops.push_back(std::move(op));
    return arguments;
  }
  void call(const Line& line) {
    std::vector<std::uint32_t> arguments = add_operator(line);
    std::vector<std::string> names;
    if (line.list("RESULT").size() > kMaxResults)
      line.fail(fmt::format("more than {} results", kMaxResults));
    for (const json& result : line.list("RESULT"))
      names.push_back(line.name_in(result, "RESULT"));
    expect(line, std::move(arguments), names);
  }
  /// Copies on write: the name refers to a new storage of equal size, other names keep the old one.
  void mutate(const Line& line) {
    const std::vector<std::uint32_t> arguments = add_operator(line);
    const json& names = line.list("ARGS");
    std::vector<std::pair<std::string, std::uint32_t>> renamed;
    for (const json& value : line.list("MUTATE")) {
      const std::int64_t at = line.whole(value, "MUTATE");
      if (at < 0 || at >= static_cast<std::int64_t>(arguments.size()))
        line.fail("'MUTATE' must list places of arguments");
      const std::string& name = line.name_in(names[static_cast<std::size_t>(at)], "ARGS");
      const std::int64_t bytes = storages_[arguments[static_cast<std::size_t>(at)]].bytes;
      const std::uint32_t id = add_storage(line, name + "'", bytes,
                                           static_cast<std::uint32_t>(problem().ops.size()) - 1);
      problem().ops.back().writes.push_back(storages_[id].buffer);
      renamed.emplace_back(name, id);
    }
    for (const auto& [name, id] : renamed) {
      ++storages_[id].names;
      std::uint32_t& refers = names_.at(name);
      drop(std::exchange(refers, id));
    }
  }
  void copy_from(const Line& line) {
    const std::uint32_t source = named(line, line.text("SRC"));
    named(line, line.text("DST"));
    ++storages_[source].names;
    drop(std::exchange(names_.at(line.text("DST")), source));
  }
  void release(const Line& line) {
    const auto found = names_.find(line.text("NAME"));
    if (found == names_.end())
      named(line, line.text("NAME")); // throws
    drop(found->second);
    names_.erase(found);
  }
  void annotate(const Line& line) {
    if (line.text("ANNOTATION") != "START" || started_)
      return;
    started_ = true;
    log_ = {};
    live_ = bytes_in_all_ = cost_in_all_ = 0;
    for (Storage& storage : storages_) {
      storage.buffer = kNone;
      storage.given = true;
      bytes_in_all_ += storage.bytes;
    }
  }

  OperatorLog log_;
  std::unordered_map<std::string, std::uint32_t> names_; ///< in use; only looked up
  std::vector<Storage> storages_;
  std::vector<Result> results_;
  std::vector<std::uint32_t> arguments_; ///< storages of the call that made the results
  bool constant_ = false;                ///< the results are a constant
  bool started_ = false;
  std::int64_t live_ = 0;
  std::int64_t earlier_bytes_ = 0; ///< given bytes from before the step
  std::int64_t bytes_in_all_ = 0;
  std::int64_t cost_in_all_ = 0;
};

} // namespace

OperatorLog parse_operator_log(std::string_view text, const std::string& origin) {
  LogReplay player;
  std::optional<Line> last;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    last.emplace(line, SourceLoc{origin, number, 1, {}});
    player.play(*last);
  }
  OperatorLog log = player.end(last ? &*last : nullptr);
  if (log.problem.ops.empty())
    throw InputError({origin}, "an operator log without a single CALL");
  verify(log.problem);
  return log;
}

OperatorLog read_operator_log(const std::string& path) {
  return parse_operator_log(read_file(path, kMaxBytes), path);
}

} // namespace monet
