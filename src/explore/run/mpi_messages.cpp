// Converts the messages of an MPI exploration to bytes and back; mpi_runner.cpp sends and receives
// them.
#include "explore/run/mpi_messages.hpp"

#include "base/shared/bytes.hpp"
#include "explore/shared/run_figures.hpp"
#include "explore/strategy/design_fronts.hpp"

#include <fmt/core.h>

#include <new>

namespace monet {

namespace {

enum class Family : std::uint8_t { input, infeasible, internal, memory };

// Each fields() lists a message's fields once for both directions: Io is a ByteWriter or a
// ByteReader.

template <class Io, class Value>
using Of = std::conditional_t<std::is_same_v<Io, ByteWriter>, const Value, Value>;

template <class Io>
void fields(Io& io, Of<Io, std::optional<RemoteFailure>>& failure) {
  bool there = failure.has_value();
  io.number(there);
  if constexpr (std::is_same_v<Io, ByteReader>)
    failure = there ? std::optional<RemoteFailure>(std::in_place) : std::nullopt;
  if (!there)
    return;
  io.number(failure->position);
  io.text(failure->error);
}

template <class Io>
void fields(Io& io, Of<Io, DesignResult>& result) {
  io.number(result.id, result.feasible, result.area_mm2, result.peak_power_w, result.frequency_hz);
  io.text(result.reason);
  io.list(result.runs, [&](auto& run) {
    for_each_run_figure(run, [&](const char*, auto& figure) { io.number(figure); });
  });
  io.list(result.metrics, [&](auto& metric) {
    io.text(metric.name);
    io.number(metric.value);
  });
}

template <class Io>
void fields(Io& io, Of<Io, std::vector<TrainingRecord>>& trainings) {
  io.list(trainings, [&](auto& training) {
    io.text(training.key);
    io.number(training.seed, training.error, training.gradients_flushed);
  });
}

template <class Io>
void fields(Io& io, Of<Io, KnownFronts>& known) {
  io.list(known.fronts, [&](auto& front) {
    io.number(front.request.run);
    io.list(front.request.objectives, [&](auto& objective) { io.number(objective); });
    io.list(front.points.all(),
            [&](auto& point) { io.list(point, [&](auto& value) { io.number(value); }); });
  });
}

template <class Io>
void fields(Io& io, Of<Io, WorkMessage>& message) {
  io.number(message.position);
  io.list(message.ids, [&](auto& id) { io.number(id); });
  KnownFronts fronts = message.fronts ? *message.fronts : KnownFronts{};
  fields(io, fronts);
  if constexpr (std::is_same_v<Io, ByteReader>)
    message.fronts = fronts.fronts.empty() ? nullptr : std::make_shared<KnownFronts>(fronts);
  fields(io, message.trainings);
}

template <class Io>
void fields(Io& io, Of<Io, HelloMessage>& message) {
  io.text(message.identity);
  io.number(message.threads);
  fields(io, message.failure);
}

template <class Io>
void fields(Io& io, Of<Io, ResultsMessage>& message) {
  io.list(message.results, [&](auto& result) { fields(io, result); });
  io.number(message.received, message.idle, message.evaluation_seconds,
            message.communication_seconds, message.messages);
  fields(io, message.failure);
  fields(io, message.trainings);
}

template <class Io>
void fields(Io& io, Of<Io, std::vector<InputProblem>>& problems) {
  io.list(problems, [&](auto& problem) {
    io.text(problem.where.origin);
    io.number(problem.where.line, problem.where.column);
    io.text(problem.where.element);
    io.text(problem.what);
    io.text(problem.hint);
  });
}

} // namespace

template <class Message>
std::string pack(const Message& message) {
  ByteWriter out;
  fields(out, message);
  return out.take();
}

template <class Message>
Message unpack(std::string_view bytes) {
  ByteReader in(bytes);
  Message message;
  fields(in, message);
  return message;
}

template std::string pack(const WorkMessage&);
template std::string pack(const HelloMessage&);
template std::string pack(const ResultsMessage&);
template WorkMessage unpack(std::string_view);
template HelloMessage unpack(std::string_view);
template ResultsMessage unpack(std::string_view);

std::string pack_error(const std::exception_ptr& error) {
  ByteWriter out;
  try {
    std::rethrow_exception(error);
  } catch (const InputError& input) {
    out.number(Family::input);
    fields(out, input.problems());
  } catch (const InfeasibleError& infeasible) {
    out.number(Family::infeasible);
    out.text(infeasible.what());
  } catch (const std::bad_alloc&) {
    out.number(Family::memory);
  } catch (const std::exception& other) {
    out.number(Family::internal);
    out.text(other.what());
  }
  return out.take();
}

void throw_error(std::string_view bytes, int rank) {
  ByteReader in(bytes);
  Family family{};
  in.number(family);
  if (family == Family::memory)
    throw std::bad_alloc();
  if (family == Family::input) {
    std::vector<InputProblem> problems;
    fields(in, problems);
    throw InputError(std::move(problems));
  }
  std::string text;
  in.text(text);
  if (family == Family::infeasible)
    throw InfeasibleError(text);
  throw InternalError(fmt::format("process {}: {}", rank, text));
}

} // namespace monet
