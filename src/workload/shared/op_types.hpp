// Types of all operators in the catalogue, as constants: `op.op_type == ops::Conv`.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet::ops {

enum class Place : int {
#define MONET_NAME(type) type,
#include "workload/operators/names.def"
  count,
};

#define MONET_NAME(type)                                                                           \
  inline constexpr OpType::Name kNameOf##type{#type, static_cast<int>(Place::type)};               \
  inline constexpr OpType type{kNameOf##type};
#include "workload/operators/names.def"

inline constexpr OpType kAll[]{
#define MONET_NAME(type) type,
#include "workload/operators/names.def"
};

} // namespace monet::ops
