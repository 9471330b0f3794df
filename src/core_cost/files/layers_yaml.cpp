// YAML workloads of ZigZag: one entry per layer, with an equation over its operands.
#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"
#include "core_cost/files/layer_equation.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/core_cost/layers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace monet {

namespace {

using namespace core_cost_detail;

constexpr std::size_t kMaxLayersBytes = std::size_t{1} << 24;
constexpr std::int64_t kMaxIterations = std::int64_t{1} << 50;
constexpr std::int64_t kMaxPrecision = 4096;

/// Ids of the layers read so far.
using Ids = std::map<std::int64_t, std::size_t>;

/// Reads one entry of the list.
class LayerReader {
public:
  LayerReader(const YamlNode& node, Ids& ids, ProblemList& problems)
      : map_(node, problems), ids_(ids), problems_(problems), where_(node.where) {}

  Layer read() {
    Layer layer;
    layer.where = where_;
    const std::int64_t id = map_.require_integer("id");
    if (ids_.count(id) != 0)
      problems_.add(where_, fmt::format("a layer with id {} is there already", id));
    const YamlNode* name = map_.find("name");
    if (name != nullptr && name->kind != YamlNode::Kind::null)
      layer.name = as_string(*name, problems_).value_or("");
    if (layer.name.empty())
      layer.name = fmt::format("Layer{}", id);
    layer.op_type = map_.require_string("operator_type");
    read_loops(layer.problem);
    read_relations(layer.problem);
    read_equation(layer);
    read_extents(layer.problem);
    read_precisions();
    layer.id = id;
    read_sources(layer);
    ids_.emplace(id, ids_.size());
    map_.ignore("time_dim");
    map_.finish();
    if (problems_.size() == before_)
      make_operands(layer);
    return layer;
  }

  const std::vector<std::size_t>& parents() const { return parents_; }

private:
  void read_loops(CoreProblem& problem) {
    problem.compute = ComputeKind::mac;
    const YamlNode* names = map_.require("loop_dims");
    const YamlNode* sizes = map_.require("loop_sizes");
    if (names == nullptr || sizes == nullptr)
      return;
    const std::vector<std::string> dims = as_strings(*names, problems_);
    const std::vector<std::int64_t> values = as_integers(*sizes, problems_);
    if (dims.size() != values.size()) {
      problems_.add(sizes->where,
                    fmt::format("{} sizes for {} loop dimensions", values.size(), dims.size()));
      return;
    }
    std::int64_t iterations = 1;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const std::string dim = upper(dims[i]);
      if (dim.empty() || find(problem, dim))
        problems_.add(names->where, fmt::format("loop dimension '{}' is given twice", dim));
      if (values[i] < 1)
        problems_.add(sizes->where,
                      fmt::format("{} iterations of '{}'; at least 1 is needed", values[i], dim));
      const std::int64_t size = std::max<std::int64_t>(1, values[i]);
      if (size > kMaxIterations / iterations) {
        problems_.add(sizes->where,
                      fmt::format("more than {} iterations in one layer", kMaxIterations));
        return;
      }
      iterations *= size;
      problem.dims.push_back({dim, size});
    }
  }

  void read_relations(const CoreProblem& problem) {
    const YamlNode* list = map_.find("dimension_relations");
    if (list == nullptr || list->kind == YamlNode::Kind::null)
      return;
    if (list->kind != YamlNode::Kind::sequence) {
      problems_.add(list->where, "'dimension_relations' must be a list");
      return;
    }
    for (const YamlNode& item : list->items) {
      const auto text = as_string(item, problems_);
      auto relation = text ? scan_relation(*text) : std::nullopt;
      if (!relation) {
        if (text)
          problems_.add(item.where, "expected a relation like 'ix=2*ox+1*fx'");
        continue;
      }
      relation->where = item.where;
      if (check_relation(problem, *relation))
        relations_.push_back(std::move(*relation));
    }
  }

  bool check_relation(const CoreProblem& problem, const Relation& relation) {
    const std::size_t before = problems_.size();
    for (const auto& [dim, coefficient] :
         {std::pair(relation.first, relation.first_coefficient),
          std::pair(relation.second, relation.second_coefficient)}) {
      if (const auto found = find(problem, dim); !found) {
        problems_.add(relation.where, fmt::format("'{}' is not a loop dimension", dim),
                      nearest_name_hint(dim, names_of(problem.dims)));
      } else if (coefficient > kMaxIterations / problem.dims[*found].size) {
        problems_.add(relation.where, fmt::format("{}*{} spans too much", coefficient, dim));
      }
    }
    if (relation.first == relation.second)
      problems_.add(relation.where,
                    fmt::format("'{}' is on both sides of the sum", relation.first));
    if (find(problem, relation.lhs) || relation_of(relation.lhs) != nullptr)
      problems_.add(relation.where, fmt::format("'{}' is already defined", relation.lhs));
    return problems_.size() == before;
  }

  void read_equation(Layer& layer) {
    const YamlNode* node = map_.require("equation");
    const auto text = node != nullptr ? as_string(*node, problems_) : std::nullopt;
    if (!text)
      return;
    equation_ = scan_equation(*text);
    if (equation_.empty()) {
      problems_.add(node->where, "expected an equation like 'O[k]+=W[k][c]*I[c]'");
      return;
    }
    if (equation_[0].name != "O")
      problems_.add(node->where,
                    fmt::format("the output must be called O, not '{}'", equation_[0].name));
    for (const EquationOperand& operand : equation_) {
      if (std::ranges::find(layer.roles, operand.name) != layer.roles.end())
        problems_.add(node->where, fmt::format("operand '{}' is there twice", operand.name));
      layer.roles.push_back(operand.name);
      for (const std::string& index : operand.indices) {
        if (find(layer.problem, index) || relation_of(index) != nullptr)
          continue;
        std::vector<std::string> known = names_of(layer.problem.dims);
        for (const Relation& relation : relations_)
          known.push_back(relation.lhs);
        problems_.add(node->where,
                      fmt::format("index '{}' is neither a loop dimension nor the left side of a "
                                  "relation",
                                  index),
                      nearest_name_hint(index, known));
      }
    }
  }

  /// Sizes of the axes that relations describe: as given, or the reach of the loops less the
  /// padding.
  void read_extents(const CoreProblem& problem) {
    for (Relation& relation : relations_) {
      const std::int64_t step = std::gcd(relation.first_coefficient, relation.second_coefficient);
      const std::int64_t a = problem.dims[find(problem, relation.first).value()].size;
      const std::int64_t b = problem.dims[find(problem, relation.second).value()].size;
      relation.extent = a * b - std::max<std::int64_t>(0, b - relation.first_coefficient / step) *
                                    (a - relation.second_coefficient / step);
    }
    const YamlNode* dims = map_.find("pr_loop_dims");
    const YamlNode* sizes = map_.find("pr_loop_sizes");
    const YamlNode* padding = map_.find("padding");
    const auto given = [](const YamlNode* n) {
      return n != nullptr && n->kind != YamlNode::Kind::null;
    };
    std::vector<Relation*> axes;
    if (given(dims)) {
      for (const std::string& name : as_strings(*dims, problems_)) {
        axes.push_back(relation_of(upper(name)));
        if (axes.back() == nullptr)
          problems_.add(dims->where, fmt::format("'{}' is not the left side of a relation", name));
      }
    }
    if (given(padding))
      subtract_padding(*padding, axes);
    if (given(sizes))
      set_extents(*sizes, axes);
    for (const Relation& relation : relations_) {
      if (relation.extent < 1)
        problems_.add(relation.where, fmt::format("the axis of '{}' has {} elements", relation.lhs,
                                                  relation.extent));
    }
  }

  bool check_count(const YamlNode& node, std::size_t count, std::size_t axes,
                   std::string_view key) {
    if (count == axes)
      return true;
    problems_.add(node.where,
                  fmt::format("'{}' has {} entries, but 'pr_loop_dims' has {}", key, count, axes));
    return false;
  }

  void subtract_padding(const YamlNode& node, const std::vector<Relation*>& axes) {
    if (node.kind != YamlNode::Kind::sequence) {
      problems_.add(node.where, "'padding' must be a list of pairs");
      return;
    }
    if (!check_count(node, node.items.size(), axes.size(), "padding"))
      return;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::vector<std::int64_t> sides = as_integers(node.items[i], problems_);
      const bool valid = sides.size() == 2 && std::ranges::all_of(sides, [](auto s) {
                           return s >= 0 && s <= kMaxIterations;
                         });
      if (!valid)
        problems_.add(node.items[i].where, "expected the padding before and after, like [1, 1]");
      else if (axes[i] != nullptr)
        axes[i]->extent -= sides[0] + sides[1];
    }
  }

  void set_extents(const YamlNode& node, const std::vector<Relation*>& axes) {
    const std::vector<std::int64_t> sizes = as_integers(node, problems_);
    if (!check_count(node, sizes.size(), axes.size(), "pr_loop_sizes"))
      return;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != nullptr)
        axes[i]->extent = sizes[i];
    }
  }

  void read_precisions() {
    const YamlNode* node = map_.require("operand_precision");
    if (node == nullptr)
      return;
    const YamlMap precisions(*node, problems_);
    for (const YamlNode::Entry& entry : precisions.node().entries) {
      check_operand(entry, "O_final");
      const auto bits = as_integer(entry.value, problems_);
      if (bits && (*bits < 0 || *bits > kMaxPrecision))
        problems_.add(entry.value.where, fmt::format("a precision of {} bits; 0 to {} are possible",
                                                     *bits, kMaxPrecision));
      precision_[entry.key] = bits.value_or(0);
    }
    for (const EquationOperand& operand : equation_) {
      if (precision_.count(operand.name) == 0)
        problems_.add(node->where, fmt::format("no precision for operand '{}'", operand.name));
    }
  }

  /// Layers that make the operands; the layer's own id denotes constants.
  void read_sources(Layer& layer) {
    layer.sources.resize(equation_.size());
    const YamlNode* node = map_.find("operand_source");
    if (node == nullptr || node->kind == YamlNode::Kind::null)
      return;
    const YamlMap sources(*node, problems_);
    for (const YamlNode::Entry& entry : sources.node().entries) {
      check_operand(entry, "O");
      const auto source = as_integer(entry.value, problems_);
      if (!source || *source == layer.id)
        continue;
      if (const auto known = ids_.find(*source); known == ids_.end())
        problems_.add(entry.value.where,
                      fmt::format("no layer before this one has id {}", *source));
      else
        parents_.push_back(known->second);
      for (std::size_t o = 0; o < equation_.size(); ++o) {
        if (equation_[o].name == entry.key)
          layer.sources[o] = *source;
      }
    }
    layer.constant_weights =
        std::ranges::count_if(layer.sources, [](const auto& made) { return made.has_value(); }) < 2;
  }

  /// Checks operand names; ZigZag lists these names whether a layer has them or not.
  void check_operand(const YamlNode::Entry& entry, std::string_view also) {
    std::vector<std::string> known{"W", "I", "S", std::string(also)};
    for (const EquationOperand& operand : equation_)
      known.push_back(operand.name);
    if (!equation_.empty() && std::ranges::find(known, entry.key) == known.end())
      problems_.add(entry.key_where, fmt::format("the equation has no operand '{}'", entry.key),
                    nearest_name_hint(entry.key, known));
  }

  void make_operands(Layer& layer) {
    bool used_i1 = false;
    for (const EquationOperand& from : equation_)
      used_i1 = used_i1 || from.name == "I";
    for (const EquationOperand& from : equation_) {
      ProblemOperand operand;
      operand.partial_bits = precision_.at(from.name);
      operand.bits = operand.partial_bits;
      if (from.name == "O") {
        operand.mode = AccessMode::write;
        operand.memory = MemoryOperand::O;
        if (const auto final_bits = precision_.find("O_final"); final_bits != precision_.end())
          operand.bits = final_bits->second;
      } else if (from.name == "W" || (from.name != "I" && used_i1)) {
        operand.memory = MemoryOperand::I2;
      } else {
        operand.memory = MemoryOperand::I1;
        used_i1 = true;
      }
      add_axes(layer.problem, from, operand);
      layer.problem.operands.push_back(std::move(operand));
    }
  }

  /// Adds an operand's axes. As in ZigZag, an operand with one axis of two loops has all axes that
  /// the layer's relations describe.
  void add_axes(const CoreProblem& problem, const EquationOperand& from,
                ProblemOperand& operand) const {
    const auto dim = [&](const std::string& name) {
      return static_cast<std::uint32_t>(find(problem, name).value());
    };
    bool related = false;
    for (const std::string& index : from.indices) {
      if (!find(problem, index)) {
        related = true;
        continue;
      }
      operand.axes.push_back({{{dim(index), 1}}, 0, false});
      operand.extents.push_back(problem.dims[dim(index)].size);
    }
    for (std::size_t i = 0; related && i < relations_.size(); ++i) {
      const Relation& r = relations_[i];
      operand.axes.push_back(
          {{{dim(r.first), r.first_coefficient}, {dim(r.second), r.second_coefficient}}, 0, false});
      operand.extents.push_back(r.extent);
    }
  }

  static std::optional<std::size_t> find(const CoreProblem& problem, std::string_view name) {
    const auto found = std::ranges::find(problem.dims, name, &LoopDim::name);
    return found == problem.dims.end() ? std::nullopt
                                       : std::optional<std::size_t>(found - problem.dims.begin());
  }
  Relation* relation_of(std::string_view lhs) {
    const auto found = std::ranges::find(relations_, lhs, &Relation::lhs);
    return found == relations_.end() ? nullptr : &*found;
  }

  YamlMap map_;
  Ids& ids_;
  ProblemList& problems_;
  SourceLoc where_;
  std::size_t before_ = problems_.size();
  std::vector<Relation> relations_;
  std::vector<EquationOperand> equation_;
  std::map<std::string, std::int64_t> precision_;
  std::vector<std::size_t> parents_; ///< by position in the list
};

} // namespace

std::vector<Layer> parse_layers(std::string_view text, const std::string& origin) {
  const YamlNode root = parse_yaml(text, origin);
  require_kind(root, {FileKind::layers});
  ProblemList problems;
  if (root.kind != YamlNode::Kind::sequence || root.items.empty()) {
    problems.add(root.where, "expected a list of layers");
    problems.throw_if_any();
  }
  std::vector<Layer> listed;
  std::vector<std::vector<std::size_t>> parents;
  Ids ids;
  for (const YamlNode& item : root.items) {
    LayerReader reader(item, ids, problems);
    listed.push_back(reader.read());
    parents.push_back(reader.parents());
  }
  problems.throw_if_any();
  std::vector<Layer> layers;
  std::vector<std::size_t> place(listed.size());
  for (const std::size_t i : by_generation(parents)) {
    place[i] = layers.size();
    for (const std::size_t parent : std::set<std::size_t>(parents[i].begin(), parents[i].end())) {
      listed[i].makers.push_back(place[parent]);
      layers[place[parent]].takers.push_back(place[i]);
    }
    layers.push_back(std::move(listed[i]));
  }
  return layers;
}

std::vector<Layer> read_layers(const std::string& path) {
  return parse_layers(read_file(path, kMaxLayersBytes), path);
}

} // namespace monet
