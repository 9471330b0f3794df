// Parses an Einsum operator into a layer of the reference whose loops are its letters. The table of
// parsers (layer_parser.cpp) calls this.
#include "reference/stream/tiles/layer_parser.hpp"

#include <algorithm>

namespace monet::stream {

namespace {

/// The letters of each input and of the result.
std::vector<std::string> equation_parts(std::string equation) {
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= equation.size();) {
    const std::size_t comma = equation.find(',', at);
    const std::size_t arrow = equation.find("->", at);
    const std::size_t end = std::min({comma, arrow, equation.size()});
    parts.push_back(equation.substr(at, end - at));
    at = end + (end == arrow ? 2 : 1);
  }
  return parts;
}

class EinsumParser {
public:
  explicit EinsumParser(const ParseContext& context)
      : context_(context), layer_(context, context.op.op_type.str()),
        parts_(equation_parts(context.op.attributes.text("equation", ""))),
        inputs_(context.op.inputs.size()) {}

  ParsedLayer run() {
    const bool plain = is_plain();
    if (!plain)
      note(context_, "einsum-form", "an ellipsis, or no result in the equation");
    std::vector<std::vector<std::uint32_t>> axes;
    for (std::size_t i = 0; i <= inputs_; ++i)
      axes.push_back(plain ? lettered_axes(i) : nest_axes(i));
    layer_.operand(Operand::O, axes[inputs_]);
    layer_.operand(Operand::I, axes[0]);
    layer_.operand(Operand::W, inputs_ > 1 ? axes[1] : std::vector<std::uint32_t>{});
    set_precisions(context_, layer_);
    set_sources(context_, layer_, 0);
    return std::move(layer_);
  }

private:
  /// Shape of an equation part: inputs first, then the result.
  Shape shape_of(std::size_t part) const {
    return part < inputs_ ? input_shape(context_, part) : output_shape(context_);
  }

  /// Whether every operand has one letter per axis.
  bool is_plain() const {
    if (parts_.size() != inputs_ + 1 || inputs_ > 2)
      return false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].find('.') != std::string::npos || parts_[i].size() != shape_of(i).size())
        return false;
    }
    return true;
  }

  std::vector<std::uint32_t> lettered_axes(std::size_t part) {
    const Shape shape = shape_of(part);
    std::vector<std::uint32_t> axes;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      char letter = parts_[part][i];
      if (letter >= 'a' && letter <= 'z')
        letter = static_cast<char>(letter - 'a' + 'A');
      axes.push_back(loop(std::string(1, letter), shape[i]));
    }
    return axes;
  }

  /// Axes of a part according to the loop nest of our own operator.
  std::vector<std::uint32_t> nest_axes(std::size_t part) {
    const LoopNest& nest = context_.op.nest;
    const std::size_t operand = part < inputs_ ? part + 1 : 0; // the output is first
    std::vector<std::uint32_t> axes;
    if (operand >= nest.operands.size())
      return axes;
    for (const AxisExpr& axis : nest.operands[operand].axes) {
      if (!axis.terms.empty())
        axes.push_back(loop(nest.dims[axis.terms[0].dim].name, nest.dims[axis.terms[0].dim].size));
    }
    return axes;
  }

  /// The loop with this name; created at its first use.
  std::uint32_t loop(const std::string& name, std::int64_t size) {
    const auto found = std::ranges::find(names_, name);
    if (found != names_.end())
      return static_cast<std::uint32_t>(found - names_.begin());
    names_.push_back(name);
    return layer_.loop(name, size);
  }

  const ParseContext& context_;
  ParsedLayer layer_;
  std::vector<std::string> parts_;
  std::size_t inputs_;
  std::vector<std::string> names_; ///< of the layer's loops
};

} // namespace

ParsedLayer parse_einsum(const ParseContext& context) {
  return EinsumParser(context).run();
}

} // namespace monet::stream
