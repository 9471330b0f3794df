#include "options/instructions.hpp"

#include "options/command_line.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet::cli {

void add_instructions(Command& command, std::string& word, std::string_view group) {
  command.add("--instructions", &word,
              "Vector instructions to emulate with; results do not depend on it",
              {.choices = {"best", "portable", "avx2", "avx512"}, .group = std::string(group)});
}

Instructions instructions_of(const std::string& word) {
  const Instructions instructions = *instructions_named(word);
  if (!is_available(instructions))
    throw InputError({"--instructions"},
                     fmt::format("this machine has no {}: the best it has are {}", word,
                                 name_of_best_instructions()));
  return instructions;
}

} // namespace monet::cli
