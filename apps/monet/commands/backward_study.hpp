// Study of `monet backward`: the contents of its file.
#pragma once

#include "commands/backward.hpp"

#include "monet/core_cost/backward.hpp"

#include <map>
#include <string>
#include <vector>

namespace monet::cli {

/// Choices for the details that the paper does not specify.
struct StudyChoices : BackwardChoices {
  std::string average = "models"; ///< "models" or "time"
  std::string measure = "time";   ///< "time" or "speed"
  std::string table_suffix;       ///< suffix of table names, if such tables exist
};

struct StudyMachine {
  std::string hardware; ///< path of the hardware file
  Chip chip;
  double gb_per_s = 0; ///< 10^9 bytes/s; 0: from the file
  std::int64_t batch = 1;
};

struct StudyNetwork {
  std::string name;
  std::map<std::string, std::string> tables; ///< table names by machine
};

/// Alternative to our choices.
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
  std::map<std::string, StudyMachine> machines; ///< by name: small and large
  std::vector<StudyNetwork> networks;
  std::vector<std::int64_t> cores;
  std::vector<double> bandwidths;
  std::vector<std::int64_t> batches;
  StudyChoices choices;
  std::map<std::string, double> published; ///< figures of the paper by id: percentages or factors
  bool searches = true;                    ///< adds `best-sequential` and `joint` with our choices
  std::vector<StudyAmbiguity> ambiguities;
  std::vector<StudyAssumption> assumptions;
  std::map<std::string, GemmTable> tables; ///< tables by name
  std::vector<std::string> files;

  /// Table of the network on the machine, with the suffix of the choices if it exists.
  const GemmTable& table(const StudyNetwork& network, const std::string& machine,
                         const StudyChoices& with) const;
  std::string folder; ///< folder of the tables
};

/// Reads a study and its files. Throws one InputError with the problems of all files.
Study read_study(const std::string& path);

} // namespace monet::cli
