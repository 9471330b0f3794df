#include "explore/mpi_messages.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <type_traits>

namespace monet {

namespace {

class Writer {
public:
  template <class Number>
  void number(Number value) {
    static_assert(std::is_arithmetic_v<Number>);
    const char* bytes = reinterpret_cast<const char*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  void text(const std::string& value) {
    number(std::uint64_t{value.size()});
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void failure(const std::optional<RemoteFailure>& value) {
    number(value.has_value());
    if (!value)
      return;
    number(value->position);
    text({value->error.begin(), value->error.end()});
  }
  Bytes take() { return std::move(bytes_); }

private:
  Bytes bytes_;
};

class Reader {
public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}
  template <class Number>
  Number number() {
    Number value{};
    need(sizeof value);
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text() {
    const auto size = number<std::uint64_t>();
    need(size);
    std::string value(bytes_.data() + at_, size);
    at_ += size;
    return value;
  }
  /// Of elements that take at least a byte each.
  std::uint64_t count() {
    const auto value = number<std::uint64_t>();
    need(value);
    return value;
  }
  std::optional<RemoteFailure> failure() {
    if (!number<bool>())
      return std::nullopt;
    RemoteFailure value;
    value.position = number<std::uint64_t>();
    const std::string error = text();
    value.error.assign(error.begin(), error.end());
    return value;
  }

private:
  void need(std::uint64_t size) const {
    internal_check(size <= bytes_.size() - at_, "a message of another process is too short");
  }
  const Bytes& bytes_;
  std::size_t at_ = 0;
};

enum class Family : std::uint8_t { input, infeasible, internal, memory };

void write(Writer& out, const DesignResult& result) {
  out.number(result.id);
  out.number(result.feasible);
  out.text(result.reason);
  out.number(result.area_mm2);
  out.number(result.peak_power_w);
  out.number(result.frequency_hz);
  out.number(std::uint64_t{result.runs.size()});
  for (const RunFigures& run : result.runs) {
    out.number(run.latency_cycles);
    out.number(run.energy_pj);
    out.number(run.peak_memory_bytes);
  }
}

DesignResult read_result(Reader& in) {
  DesignResult result;
  result.id = in.number<DesignId>();
  result.feasible = in.number<bool>();
  result.reason = in.text();
  result.area_mm2 = in.number<double>();
  result.peak_power_w = in.number<double>();
  result.frequency_hz = in.number<double>();
  const std::uint64_t runs = in.count();
  for (std::uint64_t r = 0; r < runs; ++r) {
    RunFigures run;
    run.latency_cycles = in.number<std::int64_t>();
    run.energy_pj = in.number<double>();
    run.peak_memory_bytes = in.number<std::int64_t>();
    result.runs.push_back(run);
  }
  return result;
}

} // namespace

Bytes pack(const WorkMessage& message) {
  Writer out;
  out.number(message.position);
  out.number(std::uint64_t{message.ids.size()});
  for (const DesignId id : message.ids)
    out.number(id);
  return out.take();
}

WorkMessage unpack_work(const Bytes& bytes) {
  Reader in(bytes);
  WorkMessage message;
  message.position = in.number<std::uint64_t>();
  message.ids.resize(in.count());
  for (DesignId& id : message.ids)
    id = in.number<DesignId>();
  return message;
}

Bytes pack(const HelloMessage& message) {
  Writer out;
  out.text(message.identity);
  out.number(message.threads);
  out.failure(message.failure);
  return out.take();
}

HelloMessage unpack_hello(const Bytes& bytes) {
  Reader in(bytes);
  HelloMessage message;
  message.identity = in.text();
  message.threads = in.number<std::uint64_t>();
  message.failure = in.failure();
  return message;
}

Bytes pack(const ResultsMessage& message) {
  Writer out;
  out.number(std::uint64_t{message.results.size()});
  for (const DesignResult& result : message.results)
    write(out, result);
  out.number(message.received);
  out.number(message.idle);
  out.number(message.evaluation_seconds);
  out.number(message.communication_seconds);
  out.number(message.messages);
  out.failure(message.failure);
  return out.take();
}

ResultsMessage unpack_results(const Bytes& bytes) {
  Reader in(bytes);
  ResultsMessage message;
  const std::uint64_t count = in.count();
  message.results.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i)
    message.results.push_back(read_result(in));
  message.received = in.number<std::uint64_t>();
  message.idle = in.number<bool>();
  message.evaluation_seconds = in.number<double>();
  message.communication_seconds = in.number<double>();
  message.messages = in.number<std::uint64_t>();
  message.failure = in.failure();
  return message;
}

Bytes pack_error(const std::exception_ptr& error) {
  Writer out;
  try {
    std::rethrow_exception(error);
  } catch (const InputError& input) {
    out.number(static_cast<std::uint8_t>(Family::input));
    out.number(std::uint64_t{input.problems().size()});
    for (const InputProblem& problem : input.problems()) {
      out.text(problem.where.origin);
      out.number(problem.where.line);
      out.number(problem.where.column);
      out.text(problem.where.element);
      out.text(problem.what);
      out.text(problem.hint);
    }
  } catch (const InfeasibleError& infeasible) {
    out.number(static_cast<std::uint8_t>(Family::infeasible));
    out.text(infeasible.what());
  } catch (const std::bad_alloc&) {
    out.number(static_cast<std::uint8_t>(Family::memory));
  } catch (const std::exception& other) {
    out.number(static_cast<std::uint8_t>(Family::internal));
    out.text(other.what());
  }
  return out.take();
}

void throw_error(const Bytes& bytes, int rank) {
  Reader in(bytes);
  switch (static_cast<Family>(in.number<std::uint8_t>())) {
  case Family::input: {
    std::vector<InputProblem> problems(in.count());
    for (InputProblem& problem : problems) {
      problem.where.origin = in.text();
      problem.where.line = in.number<int>();
      problem.where.column = in.number<int>();
      problem.where.element = in.text();
      problem.what = in.text();
      problem.hint = in.text();
    }
    throw InputError(std::move(problems));
  }
  case Family::infeasible:
    throw InfeasibleError(in.text());
  case Family::memory:
    throw std::bad_alloc();
  case Family::internal:
    break;
  }
  throw InternalError(fmt::format("process {}: {}", rank, in.text()));
}

} // namespace monet
