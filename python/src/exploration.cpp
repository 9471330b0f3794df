// Binds spaces and stores of designs, and calls strategies, constraints and figures that are
// written in Python. Called by python/monet/exploring.py.
#include "exploration.hpp"

#include "base/shared/sha512.hpp"
#include "call_warnings.hpp"
#include "explore/shared/run_figures.hpp"
#include "interruptible.hpp"
#include "objects.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/explore/store.hpp"

#include <fmt/core.h>
#include <pybind11/stl.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace py = pybind11;

namespace monet::python {

namespace {

py::object value_of(const ParameterValue& value) {
  if (!value.is_number)
    return py::str(value.text);
  const double whole = std::nearbyint(value.number);
  constexpr double kExact = 9007199254740992.0; // 2^53
  if (whole == value.number && std::abs(whole) <= kExact)
    return py::int_(static_cast<std::int64_t>(whole));
  return py::float_(value.number);
}

py::dict values_of(const Space& space, DesignId id) {
  py::dict values;
  const std::vector<std::uint32_t> choices = space.choices(id);
  for (std::size_t p = 0; p < space.parameters.size(); ++p)
    values[py::str(space.parameters[p].name)] = value_of(space.parameters[p].values[choices[p]]);
  return values;
}

/// A row of a store as a dict.
py::dict design_of(const Space& space, const DesignResult& result) {
  py::dict design;
  design["id"] = result.id;
  design["values"] = values_of(space, result.id);
  design["feasible"] = result.feasible;
  design["reason"] = result.reason;
  design["area_mm2"] = result.area_mm2;
  design["peak_power_w"] = result.peak_power_w;
  design["frequency_hz"] = result.frequency_hz;
  py::dict runs;
  for (std::size_t r = 0; r < result.runs.size(); ++r) {
    py::dict figures;
    for_each_run_figure(result.runs[r],
                        [&](const char* key, auto figure) { figures[key] = figure; });
    runs[py::str(space.workload.runs.at(r))] = figures;
  }
  design["runs"] = runs;
  py::dict metrics;
  for (const Metric& metric : result.metrics)
    metrics[py::str(metric.name)] = metric.value;
  design["metrics"] = metrics;
  return design;
}

DesignId design_id(const Space& space, const py::handle& id) {
  if (!py::isinstance<py::int_>(id) && PyIndex_Check(id.ptr()) == 0)
    throw py::type_error("design: not a number: " + std::string(py::repr(id)));
  const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(id.ptr()));
  if (!number)
    throw py::error_already_set();
  const DesignId value = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr || value >= space.size()) {
    PyErr_Clear();
    throw py::index_error(fmt::format("design {}: the space has {}, counted from 0",
                                      std::string(py::repr(id)), space.size()));
  }
  return value;
}

} // namespace

/// Calls a strategy in Python, and checks that its designs are in the space and new.
class OwnCalls::OwnStrategy final : public Strategy {
public:
  OwnStrategy(OwnCalls& calls, const Space& space) : calls_(calls), space_(space) {}

  std::vector<DesignId> ask() override {
    std::vector<DesignId> ids;
    const bool asked = calls_.raised_.guard(*calls_.stop_, [&] {
      for (const py::handle one : calls_.own_.attr("ask")()) {
        const DesignId id = design_id(space_, one);
        if (const std::string broken = space_.broken_constraint(id); !broken.empty()) {
          throw py::value_error(
              fmt::format("ask: the constraint '{}' excludes design {}", broken, id));
        }
        if (!known_.insert(id).second)
          throw py::value_error(fmt::format("ask: design {} was asked for before", id));
        ids.push_back(id);
      }
    });
    return asked ? ids : std::vector<DesignId>{};
  }

  void tell(std::span<const DesignResult> results) override {
    calls_.raised_.guard(*calls_.stop_, [&] {
      py::list told;
      for (const DesignResult& result : results)
        told.append(design_of(space_, result));
      calls_.own_.attr("tell")(told);
    });
  }

private:
  OwnCalls& calls_;
  const Space& space_;
  std::set<DesignId> known_;
};

/// Evaluates designs with another evaluator, then applies the constraint and the figures in Python.
class OwnCalls::OwnEvaluator final : public DesignEvaluator {
public:
  OwnEvaluator(OwnCalls& calls, const Space& space, std::unique_ptr<DesignEvaluator> inner,
               std::size_t figures)
      : calls_(calls), space_(space), inner_(std::move(inner)), figures_(figures) {}

  DesignResult evaluate(DesignId id) override {
    DesignResult result = inner_->evaluate(id);
    calls_.judge(space_, result);
    return result;
  }
  DesignBound bound(DesignId id) override {
    DesignBound bound = inner_->bound(id);
    if (bound.feasible) {
      for (std::size_t i = space_.workload.metrics.size() - figures_;
           i < space_.workload.metrics.size(); ++i)
        bound.metrics.push_back(
            {space_.workload.metrics[i], -std::numeric_limits<double>::infinity()});
    }
    return bound;
  }
  std::optional<DesignResult> evaluate_unless(DesignId id, const BoundTest& enough) override {
    std::optional<DesignResult> result = inner_->evaluate_unless(id, enough);
    if (result)
      calls_.judge(space_, *result);
    return result;
  }
  std::vector<TrainingRecord> new_trainings() override { return inner_->new_trainings(); }
  void learn(std::span<const TrainingRecord> trainings) override { inner_->learn(trainings); }

private:
  OwnCalls& calls_;
  const Space& space_;
  std::unique_ptr<DesignEvaluator> inner_;
  std::size_t figures_;
};

OwnCalls::OwnCalls(const py::object& own) : own_(own) {
  if (own.is_none())
    return;
  if (own.attr("has_strategy").cast<bool>()) {
    parts_.strategy_name = own.attr("strategy_name").cast<std::string>();
    parts_.strategy = [this](const Space& space, DesignEvaluator&) {
      return std::make_unique<OwnStrategy>(*this, space);
    };
  }
  const std::size_t figures = py::len(own.attr("figures"));
  if (figures > 0 || !own.attr("constraint").is_none()) {
    parts_.adapt = [this](Space& space) { adapt(space); };
    parts_.evaluator = [this, figures](const Space& space, std::unique_ptr<DesignEvaluator> inner) {
      return std::make_unique<OwnEvaluator>(*this, space, std::move(inner), figures);
    };
  }
}

/// Adds the figures in Python to the metrics of a space, and the identity of the caller's parts to
/// its hash.
void OwnCalls::adapt(Space& space) {
  std::string identity;
  const bool read = raised_.guard(*stop_, [&] {
    identity = own_.attr("identity").cast<std::string>();
    for (const auto& name : own_.attr("figures").attr("keys")())
      space.workload.metrics.push_back(name.cast<std::string>());
  });
  if (!read)
    throw Stopped("own figures");
  space.content_hash = sha512_hex(space.content_hash + identity).substr(0, 16);
}

void OwnCalls::judge(const Space& space, DesignResult& result) {
  if (!result.feasible)
    return;
  const bool judged = raised_.guard(*stop_, [&] {
    const py::dict design = design_of(space, result);
    const py::object constraint = own_.attr("constraint");
    const std::string broken =
        constraint.is_none() ? "" : own_.attr("judge")(design).cast<std::string>();
    if (!broken.empty()) {
      result.feasible = false;
      result.reason = broken;
      result.runs.clear();
      result.metrics.clear();
      return;
    }
    for (const auto& [name, value] : own_.attr("measure")(design).cast<py::dict>())
      result.metrics.push_back({name.cast<std::string>(), value.cast<double>()});
  });
  if (!judged)
    throw Stopped("own constraint or figures"); // a design without judgement is not stored
}

namespace {

using SharedSpace = std::shared_ptr<const Space>;

PyChip chip_of(const Space& space, const py::handle& id) {
  const DesignId design = design_id(space, id);
  CallWarnings warnings;
  auto chip = std::make_shared<const Chip>(space.chip(design));
  return {std::move(chip), fmt::format("{}, design {}", space.name, design),
          warnings.scope().warnings()};
}

py::tuple read_store(const std::string& path) {
  Space space;
  std::vector<DesignResult> rows;
  run_interruptible([&](std::atomic<bool>&) {
    space = stored_space(path);
    StoreOptions options;
    options.read_only = true;
    open_store(path, space, options)->each([&](const DesignResult& row) { rows.push_back(row); });
  });
  py::list designs;
  for (const DesignResult& row : rows)
    designs.append(design_of(space, row));
  return py::make_tuple(space.name, space.content_hash, designs);
}

} // namespace

void add_exploration(py::module_& module) {
  py::class_<Space, std::shared_ptr<Space>>(module, "Space")
      .def_readonly("name", &Space::name)
      .def_readonly("content_hash", &Space::content_hash)
      .def_property_readonly("size", [](const Space& space) { return space.size(); })
      .def_property_readonly("runs", [](const Space& space) { return space.workload.runs; })
      .def_property_readonly("parameters",
                             [](const Space& space) {
                               py::list all;
                               for (const Parameter& parameter : space.parameters) {
                                 py::list values;
                                 for (const ParameterValue& value : parameter.values)
                                   values.append(value_of(value));
                                 all.append(py::make_tuple(parameter.name, values));
                               }
                               return all;
                             })
      .def("values", [](const Space& space,
                        const py::object& id) { return values_of(space, design_id(space, id)); })
      .def("choices", [](const Space& space,
                         const py::object& id) { return space.choices(design_id(space, id)); })
      .def("id_of",
           [](const Space& space, const std::vector<std::int64_t>& choices) {
             if (choices.size() != space.parameters.size())
               throw py::value_error(fmt::format("choices: {} numbers, but {} parameters",
                                                 choices.size(), space.parameters.size()));
             std::vector<std::uint32_t> numbers;
             for (std::size_t p = 0; p < choices.size(); ++p) {
               const std::size_t values = space.parameters[p].values.size();
               if (choices[p] < 0 || static_cast<std::size_t>(choices[p]) >= values)
                 throw py::index_error(fmt::format("choices: '{}' has {} values, counted from 0",
                                                   space.parameters[p].name, values));
               numbers.push_back(static_cast<std::uint32_t>(choices[p]));
             }
             return space.id_of(numbers);
           })
      .def("broken_constraint",
           [](const Space& space, const py::object& id) {
             return space.broken_constraint(design_id(space, id));
           })
      .def("first_design", [](const Space& space) { return space.first_design(); })
      .def("hardware_files",
           [](const Space& space, const py::object& id) {
             const auto files = space.hardware_files(design_id(space, id));
             return std::map<std::string, std::string>(files.begin(), files.end());
           })
      .def("chip", [](const Space& space, const py::object& id) { return chip_of(space, id); });
  module.def(
      "read_space",
      [](const std::string& path, const std::map<std::string, std::string>& files) {
        auto space = std::make_shared<Space>();
        run_interruptible([&](std::atomic<bool>&) {
          const GivenFiles given(files);
          *space = read_space(path);
        });
        return space;
      },
      py::arg("path"), py::arg("files"));
  module.def("read_store", &read_store, py::arg("path"));
}

} // namespace monet::python
