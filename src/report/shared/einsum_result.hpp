// Results of `monet optimise fusion --model einsum`, as JSON and as the table that it prints.
#pragma once

#include "report/shared/search_result.hpp"

#include "monet/reference/einsum_mapper.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace monet {

/// JSON of a front of fused mappings.
nlohmann::ordered_json einsum_json(const SearchHead& head, const EinsumCascade& cascade,
                                   const EinsumResult& result,
                                   std::optional<std::int64_t> buffer_bits);
/// Table of a front of fused mappings, for a terminal.
std::string einsum_table(const EinsumCascade& cascade, const EinsumResult& result,
                         const Certificate& found);

} // namespace monet
