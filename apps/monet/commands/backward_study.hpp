// A study of `monet backward`: its file, and its figures.
#pragma once

#include "commands/backward.hpp"

#include "monet/core_cost/backward_network.hpp"

#include <map>
#include <string>
#include <vector>

namespace monet::cli {

/// An answer to what the paper leaves open.
struct StudyChoices : BackwardChoices {
  std::string average = "models"; ///< or time
  std::string measure = "time";   ///< or speed
  std::string table_suffix;       ///< of tables that are there with it
};

struct StudyMachine {
  std::string hardware; ///< path
  Chip chip;
  double gb_per_s = 0; ///< 10^9 bytes a second; 0 = as the file has it
  std::int64_t batch = 1;
};

struct StudyNetwork {
  std::string name;
  std::map<std::string, std::string> tables; ///< by machine
};

/// One answer in place of ours.
struct StudyAssumption {
  std::string letter;
  std::string says;
  StudyChoices choices;
};

struct StudyAmbiguity {
  std::string letter;
  std::string what;
  std::string ours;
  std::vector<std::string> others;
};

struct Study {
  std::string name;
  std::map<std::string, StudyMachine> machines; ///< small and large
  std::vector<StudyNetwork> networks;
  std::vector<std::int64_t> cores;
  std::vector<double> bandwidths;
  std::vector<std::int64_t> batches;
  StudyChoices choices;
  std::map<std::string, double> published; ///< the paper's figures by id: percent, or factors
  bool searches = true;                    ///< `best-sequential` and `joint` with our choices, too
  std::vector<StudyAmbiguity> ambiguities;
  std::vector<StudyAssumption> assumptions;
  std::map<std::string, GemmTable> tables; ///< by name
  std::vector<std::string> files;

  /// Of the network on the machine.
  const GemmTable& table(const StudyNetwork& network, const std::string& machine,
                         const StudyChoices& with) const;
  std::string folder; ///< of the tables
};

/// One InputError with the problems of all files.
Study read_study(const std::string& path);

} // namespace monet::cli
