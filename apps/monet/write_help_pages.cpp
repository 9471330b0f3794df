// Writes the manual page and the shell completions of `monet` into a folder when the tool is built:
// write_help_pages FOLDER.
#include "commands/commands.hpp"
#include "options/help_pages.hpp"
#include "version.hpp"

#include "monet/base/files.hpp"

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  using namespace monet::cli;
  if (argc != 2)
    return 2;
  try {
    const std::string folder = argv[1];
    const Command program = monet_program();
    monet::write_file_atomically(folder + "/monet.1", man_page(program, version()));
    monet::write_file_atomically(folder + "/monet.bash", bash_completion(program));
    monet::write_file_atomically(folder + "/_monet", zsh_completion(program));
    monet::write_file_atomically(folder + "/monet.fish", fish_completion(program));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
