// Every reader of YAML on the same bytes: whatever they are, the answer is a value or an
// InputError.
#include "readers/readers.hpp"
#include "workload/shared/views.hpp"

#include "monet/core_cost/layers.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/fit/dataset.hpp"
#include "monet/fit/study.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/tiling/stacks_file.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/transformer.hpp"

namespace monet::fuzz {

namespace {

template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const InputError&) {
    // The only failure that bytes may cause; anything else ends the run.
  }
}

/// Sizes that are read make a network that holds its invariants, or one with too large a tensor.
void read_transformer(std::string_view text) {
  ProblemList problems;
  const TransformerShape shape = read_transformer_shape(parse_yaml(text, "fuzz.yaml"), problems);
  problems.throw_if_any();
  if (shape.layers > 4) // as many as there are operators
    return;
  const Graph graph = make_transformer(shape);
  verify(graph);
  verify(fold_views(graph));
}

} // namespace

void read_yaml(std::string_view text) {
  // Core files that a system file names: a fixed good one, or half of these bytes.
  const FileOpener open = [&](const std::string& name, const SourceLoc& where) {
    if (name.empty())
      throw InputError(where, "no such file");
    constexpr const char* kCore =
        "{name: c, memories: {m: {size: 64, r_cost: 1, w_cost: 1, operands: [I1, I2, O], ports: "
        "[{name: p, type: read_write, bandwidth_max: 8, allocation: ['I1, tl', 'I2, tl', 'O, tl', "
        "'O, fl']}], served_dimensions: [D1]}}, operational_array: {dimensions: [D1], sizes: [2]}}";
    const bool own = name == "self";
    return FileText{name, own ? std::string(text.substr(0, text.size() / 2)) : kCore};
  };
  attempt([&] { parse_yaml(text, "fuzz.yaml"); });
  attempt([&] { verify(parse_chip(text, "fuzz.yaml", open)); });
  attempt([&] { parse_core(text, "fuzz.yaml"); });
  attempt([&] { parse_mapping(text, "fuzz.yaml"); });
  attempt([&] { parse_layers(text, "fuzz.yaml"); });
  attempt([&] { parse_stacks(text, "fuzz.yaml"); });
  attempt([&] {
    ProblemList problems;
    read_training_options(parse_yaml(text, "fuzz.yaml"), problems);
    problems.throw_if_any();
  });
  attempt([&] {
    ProblemList problems;
    read_alternate_steps(parse_yaml(text, "fuzz.yaml"), problems);
    problems.throw_if_any();
  });
  attempt([&] {
    ProblemList problems;
    read_data_options(parse_yaml(text, "fuzz.yaml"), "fuzz.yaml", problems);
    problems.throw_if_any();
  });
  attempt([&] { train_study_of(parse_yaml(text, "fuzz.yaml"), "fuzz.yaml"); });
  attempt([&] { read_transformer(text); });
}

} // namespace monet::fuzz
