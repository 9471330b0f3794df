// Random questions: a network, a training step, a chip, a way to run it, a search. Whatever is
// valid has an answer, or a reason why there is none.
#pragma once

#include "robustness/random_onnx.hpp"
#include "schedule/random_systems.hpp"

#include "monet/optimise/step_mode.hpp"

#include <functional>
#include <string>
#include <vector>

namespace monet::testing {

enum class Search { none, fusion, allocation, checkpointing, joint, einsum };
inline constexpr std::array kSearches{Search::none,          Search::fusion, Search::allocation,
                                      Search::checkpointing, Search::joint,  Search::einsum};
const char* name_of(Search search);

/// Everything that a question is made of, so that parts of it can be left out.
struct Question {
  std::uint64_t seed = 0; ///< of what has no number of its own
  NetworkRecipe network;
  bool trains = false;
  std::vector<std::string> training; ///< lines of a training file
  SystemShape system;
  StepMode mode = StepMode::layer_by_layer;
  Halo halo = Halo::cached;
  bool mapped = false; ///< random factors, cores
  bool stacks = false; ///< random ones in place of the tool's
  bool rules = false;  ///< some transfer rules off
  bool reported = false;
  Priority priority = Priority::latency;
  Objective objective = Objective::latency;
  Search search = Search::none;
};

/// Same seed, same question.
Question random_question(std::uint64_t seed);

struct Answer {
  enum class Kind {
    found,
    refused,    ///< InputError
    infeasible, ///< InfeasibleError
    stopped,    ///< Stopped: the search was ended before it found anything
    broken,     ///< anything else: our bug
  };
  Kind kind = Kind::found;
  std::string why;
  double seconds = 0;              ///< of processor time
  std::vector<std::string> layers; ///< families that the network has
};

/// All invariants are checked on the way.
Answer ask(const Question& question);

/// The smallest question that still fails: without layers, options, cores, with smaller sizes.
Question shrunk(Question question, const std::function<bool(const Question&)>& fails);

/// For people.
std::string in_words(const Question& question);

} // namespace monet::testing
