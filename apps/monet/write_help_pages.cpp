// Writes what follows from the description of the command line and the tables of options.
// write_help_pages FOLDER: the manual page and the shell completions, when the tool is built.
// write_help_pages --sources ROOT [--check]: files of the repository, for authors; with --check,
// only reports those that differ.
#include "commands/commands.hpp"
#include "options/help_pages.hpp"
#include "options/option_files.hpp"
#include "version.hpp"

#include "monet/base/files.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

namespace monet::cli {

namespace {

void write_help(const std::string& folder, const Command& program) {
  write_file_atomically(folder + "/monet.1", man_page(program, version()));
  write_file_atomically(folder + "/monet.bash", bash_completion(program));
  write_file_atomically(folder + "/_monet", zsh_completion(program));
  write_file_atomically(folder + "/monet.fish", fish_completion(program));
}

/// Writes files of the repository, or counts those that differ.
class Sources {
public:
  Sources(std::string root, bool only_check) : root_(std::move(root)), only_check_(only_check) {}

  void put(const std::string& path, const std::string& content) {
    const std::string file = root_ + "/" + path;
    if (std::filesystem::exists(file) && read_file(file) == content)
      return;
    ++differences;
    if (only_check_)
      std::fprintf(stderr, "%s differs; run monet_help_pages --sources\n", path.c_str());
    else
      write_file_atomically(file, content);
  }
  void put_tables(const std::string& path, const Command& program) {
    put(path, with_option_tables(read_file(root_ + "/" + path), program));
  }

  int differences = 0;

private:
  std::string root_;
  bool only_check_;
};

int write_sources(const std::string& root, bool only_check, const Command& program) {
  Sources sources(root, only_check);
  sources.put_tables("docs/reference/commands/optimise.md", program);
  sources.put_tables("docs/reference/commands/schedule.md", program);
  sources.put_tables("docs/reference/experiment.md", program);
  sources.put("docs/schema/experiment.schema.json", experiment_schema());
  sources.put("python/monet/searches.py", python_searches(program));
  return only_check && sources.differences > 0 ? 1 : 0;
}

} // namespace

} // namespace monet::cli

int main(int argc, char** argv) {
  using namespace monet::cli;
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool only_check = !words.empty() && words.back() == "--check";
  try {
    const Command program = monet_program();
    if (words.size() >= 2 && words.front() == "--sources")
      return write_sources(words[1], only_check, program);
    if (words.size() != 1)
      return 2;
    write_help(words.front(), program);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
