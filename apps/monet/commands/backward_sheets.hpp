// Costs for a study of `monet backward`: all networks on one machine with one set of choices.
#pragma once

#include "commands/backward_study.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

struct StudySetting {
  std::string machine;
  std::int64_t cores = 1;
  double gb_per_s = 0;    ///< 10^9 bytes/s of one core; 0: from the file
  std::int64_t batch = 1; ///< samples of one core
  std::vector<Technique> techniques{Technique::sequential};
  StudyChoices choices;
};

/// Techniques of the paper, and the techniques of a study, which add searches.
inline const std::vector<Technique> kPaperTechniques{
    Technique::sequential, Technique::interleave,  Technique::dx_major,
    Technique::dw_major,   Technique::algorithm_1, Technique::best_of_three};
inline const std::vector<Technique> kStudyTechniques{
    Technique::sequential, Technique::interleave,     Technique::dx_major,
    Technique::dw_major,   Technique::algorithm_1,    Technique::best_of_three,
    Technique::joint,      Technique::best_sequential};

struct NetworkSheet {
  std::string name;
  std::string table;
  std::int64_t forward = 0;                 ///< cycles
  std::map<Technique, std::int64_t> cycles; ///< backward pass; always has `sequential`
  std::map<Technique, BackwardTraffic> traffic;
  std::int64_t partitioned = 0; ///< cycles of best-of-three with the fastest partition per layer
  std::int64_t dy_once = 0;     ///< cycles of `sequential` if dY passed once
  std::int64_t bound_cycles = 0;
  std::int64_t bound_bits = 0;
};

struct StudySheet {
  std::vector<NetworkSheet> networks;
  std::optional<NeighbourGuess> guess; ///< only for several cores
  std::string infeasible;              ///< reason if there is no result
};

/// Sheets of a study; each is made once and kept.
class StudySheets {
public:
  StudySheets(const Study& study, int jobs) : study_(study), jobs_(jobs) {}
  /// Sheet for a setting. `tell` receives the numbers of finished layers and of all layers.
  const StudySheet& sheet(const StudySetting& setting,
                          const std::function<void(std::int64_t, std::int64_t)>& tell);

private:
  StudySheet make(const StudySetting& setting,
                  const std::function<void(std::int64_t, std::int64_t)>& tell) const;

  const Study& study_;
  int jobs_;
  std::map<std::string, StudySheet> known_;
};

} // namespace monet::cli
