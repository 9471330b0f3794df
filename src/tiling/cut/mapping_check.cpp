#include "monet/tiling/mapping_check.hpp"

#include "tiling/cut/mapping_factors.hpp"

namespace monet {

void check_mapping(const MappingFile& mapping, const Chip& chip,
                   std::span<const Graph* const> graphs) {
  MappingSubjects subjects;
  for (const Graph* graph : graphs)
    subjects.add(*graph);
  ProblemList problems;
  check_subjects(mapping, subjects, problems);
  for (const MappingEntry& entry : mapping.entries) {
    if (entry.core_allocation)
      listed_cores(entry, chip, problems);
  }
  problems.throw_if_any();
}

} // namespace monet
