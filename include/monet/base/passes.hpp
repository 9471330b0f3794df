// PassRecord: what one pass of make_training_graph() or read_onnx() took and made.
// Example:
//   PassObserver remember(std::vector<PassRecord>& passes) {
//     return [&passes](const PassRecord& pass) { passes.push_back(pass); };
//   }
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Size of what passes build.
struct PassSize {
  std::size_t operators = 0;
  std::size_t tensors = 0;
  bool operator==(const PassSize&) const = default;
};

/// A pass that ran, or was skipped because neither the options nor the network require it.
struct PassRecord {
  std::string_view name;
  std::string_view needs; ///< what it reads, separated by commas
  std::string_view makes; ///< what it writes, separated by commas
  bool skipped = false;
  PassSize before;
  PassSize after;
};
/// Function that is called after each pass, in their order.
using PassObserver = std::function<void(const PassRecord&)>;

/// One line: name, contract, and the numbers of operators and tensors before and after the pass.
std::string line_of(const PassRecord& pass);

} // namespace monet
