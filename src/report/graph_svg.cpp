// Draws a training step as an SVG document for `monet graph --svg` and for the groups in
// result.json.
#include "report/shared/optimise_result.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace monet {

namespace {

constexpr int kBoxWidth = 190;
constexpr int kBoxHeight = 36;
constexpr int kRowGap = 18;
constexpr int kStackGap = 8;
constexpr int kColumnGap = 90;
constexpr int kMargin = 40;
constexpr int kTop = 96; ///< height of title, legend and column heads

enum Column { kForward, kBackwardInput, kBackwardWeight, kUpdate, kColumns };
constexpr std::array<const char*, kColumns> kHeads{"forward and loss", "gradients of activations",
                                                   "gradients of weights", "update"};

/// Colour of an operator's box, from a palette for people with colour blindness (Okabe and Ito).
const char* fill_of(const Operator& op, Column column) {
  switch (op.phase) {
  case Phase::forward:
    return "#cfe6f5";
  case Phase::loss:
    return "#f6d9b8";
  case Phase::backward:
    return column == kBackwardWeight ? "#cdeadf" : "#f3d3e2";
  case Phase::recompute:
    return "#fbf3b4";
  case Phase::update:
    return "#dddddd";
  }
  return "#ffffff";
}

/// Colours of groups, used in turn; light enough for black text.
constexpr std::array<const char*, 12> kGroupColours{"#cfe6f5", "#f6d9b8", "#cdeadf", "#f3d3e2",
                                                    "#fbf3b4", "#d9d2ee", "#dbe9b0", "#f5c9c3",
                                                    "#bfe3e6", "#e3d3b8", "#d5dae1", "#e4c4ee"};

struct Box {
  Column column = kForward;
  int row = 0;
  int x = 0;
  int y = 0;
};

class Picture {
public:
  /// Places the boxes of a step; `groups` may be null.
  Picture(const TrainingGraph& step, const std::vector<std::uint32_t>* groups)
      : graph_(step.graph), groups_(groups) {
    for (const TensorId id : step.stored_activations)
      stored_.insert(id);
    place();
  }

  std::string svg() const {
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" "
        "fill=\"#555\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width_, height_);
    text += fmt::format("<text x=\"{}\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{}</text>\n",
                        kMargin, html_escaped(printable(graph_.name)));
    text += legend();
    for (std::size_t c = 0; c < columns_; ++c) {
      text += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#555\" font-weight=\"bold\">{}</text>\n",
                          column_x(c), kTop - 12, kHeads[c]);
    }
    for (std::size_t i = 0; i < graph_.operators().size(); ++i)
      text += edges_into(OpId(i));
    for (std::size_t i = 0; i < graph_.operators().size(); ++i)
      text += box_text(OpId(i));
    return text + "</svg>\n";
  }

private:
  static int column_x(std::size_t column) {
    return kMargin + static_cast<int>(column) * (kBoxWidth + kColumnGap);
  }

  bool makes_weight_gradient(const Operator& op) const {
    return std::any_of(op.outputs.begin(), op.outputs.end(), [&](const auto& output) {
      return output && graph_.tensor(*output).kind == TensorKind::parameter_gradient;
    });
  }

  Column column_of(const Operator& op) const {
    if (op.phase == Phase::update)
      return kUpdate;
    if (op.phase == Phase::forward || op.phase == Phase::loss)
      return kForward;
    if (op.gradient_of == GradientOf::weight ||
        (op.gradient_of == GradientOf::none && makes_weight_gradient(op)))
      return kBackwardWeight;
    return kBackwardInput;
  }

  /// Row of an operator. Gradients and updates are in the row of their forward operator, or of the
  /// last of their producers; `fresh` is the row for other operators.
  int row_of(OpId id, int fresh) const {
    const Operator& op = graph_.op(id);
    if (op.forward_op && op.forward_op->index() < id.index())
      return boxes_[op.forward_op->index()].row;
    if (op.phase == Phase::forward || op.phase == Phase::loss)
      return fresh;
    int row = -1;
    for (const auto& input : op.inputs) {
      const auto producer = input ? graph_.tensor(*input).producer : std::nullopt;
      if (producer)
        row = std::max(row, boxes_[producer->index()].row);
    }
    return row < 0 ? fresh : row;
  }

  void place() {
    boxes_.resize(graph_.operators().size());
    std::map<std::pair<int, int>, int> stacked; // number of boxes so far, by row and column
    std::map<int, int> highest;                 // boxes in the tallest stack, by row
    int rows = 0;
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      Box& box = boxes_[i];
      box.column = column_of(graph_.operators()[i]);
      box.row = row_of(OpId(i), rows);
      rows = std::max(rows, box.row + 1);
      const int level = stacked[{box.row, box.column}]++;
      box.y = level * (kBoxHeight + kStackGap);
      box.x = column_x(box.column);
      highest[box.row] = std::max(highest[box.row], level + 1);
      columns_ = std::max<std::size_t>(columns_, box.column + 1);
    }
    std::vector<int> tops(static_cast<std::size_t>(rows) + 1, kTop);
    for (int row = 0; row < rows; ++row) {
      const int boxes = std::max(1, highest[row]);
      tops[static_cast<std::size_t>(row) + 1] = tops[static_cast<std::size_t>(row)] +
                                                boxes * (kBoxHeight + kStackGap) - kStackGap +
                                                kRowGap;
    }
    for (Box& box : boxes_)
      box.y += tops[static_cast<std::size_t>(box.row)];
    height_ = tops.back() + kMargin;
    width_ = std::max(column_x(columns_) - kColumnGap + kMargin, 860);
  }

  std::string legend() const {
    struct Entry {
      const char* colour;
      const char* dash;
      const char* text;
    };
    constexpr std::array<Entry, 4> kEntries{{{"#7a8794", "", "activation"},
                                             {"#d55e00", "5 3", "stored for the backward pass"},
                                             {"#b04a85", "", "gradient of an activation"},
                                             {"#009e73", "", "gradient of a weight"}}};
    std::string text;
    int x = kMargin;
    for (const Entry& entry : kEntries) {
      text += fmt::format("<line x1=\"{}\" y1=\"50\" x2=\"{}\" y2=\"50\" stroke=\"{}\" "
                          "stroke-width=\"2\" stroke-dasharray=\"{}\"/><text x=\"{}\" "
                          "y=\"54\">{}</text>\n",
                          x, x + 28, entry.colour, entry.dash, x + 34, entry.text);
      x += 210;
    }
    return text;
  }

  static std::string shape_text(const Tensor& tensor) {
    return tensor.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(tensor.shape, " x "));
  }

  const char* fill(OpId id, Column column) const {
    if (groups_ == nullptr)
      return fill_of(graph_.op(id), column);
    const std::uint32_t group = (*groups_)[id.index()];
    return group == kAlone ? "#ffffff" : kGroupColours[group % kGroupColours.size()];
  }

  std::string group_text(OpId id, const Box& box) const {
    if (groups_ == nullptr || (*groups_)[id.index()] == kAlone)
      return {};
    return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"10\">group "
                       "{}</text>",
                       box.x + kBoxWidth - 8, box.y + 15, (*groups_)[id.index()] + 1);
  }

  std::string box_text(OpId id) const {
    const Operator& op = graph_.op(id);
    const Box& box = boxes_[id.index()];
    std::string shape;
    for (const auto& output : op.outputs) {
      if (shape.empty() && output)
        shape = shape_text(graph_.tensor(*output));
    }
    const std::int64_t count = macs(op.nest);
    const std::string work = count > 0 ? fmt::format("{} MACs", count)
                                       : fmt::format("{} iterations of {} operations",
                                                     iterations(op.nest), op.nest.work.total());
    return fmt::format("<g><title>{}: {}, {}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" "
                       "height=\"{}\" rx=\"5\" fill=\"{}\" stroke=\"#666\"/><text x=\"{}\" "
                       "y=\"{}\">{}</text><text x=\"{}\" y=\"{}\" fill=\"#555\" "
                       "font-size=\"10\">{}</text>{}</g>\n",
                       html_escaped(printable(op.name)), name_of(op.phase), work, box.x, box.y,
                       kBoxWidth, kBoxHeight, fill(id, box.column), box.x + 8, box.y + 15,
                       html_escaped(printable(op.op_type)), box.x + 8, box.y + 29, shape,
                       group_text(id, box));
  }

  std::string edges_into(OpId id) const {
    std::string text;
    std::set<TensorId> drawn;
    for (const auto& input : graph_.op(id).inputs) {
      if (!input || !graph_.tensor(*input).producer || !drawn.insert(*input).second)
        continue;
      text += edge(*graph_.tensor(*input).producer, id, *input);
    }
    return text;
  }

  std::string edge(OpId from, OpId to, TensorId through) const {
    const Tensor& tensor = graph_.tensor(through);
    const Box& a = boxes_[from.index()];
    const Box& b = boxes_[to.index()];
    const bool crosses = a.column == kForward && b.column != kForward;
    const char* colour = "#7a8794";
    if (crosses && stored_.count(through) != 0)
      colour = "#d55e00";
    else if (tensor.kind == TensorKind::parameter_gradient)
      colour = "#009e73";
    else if (tensor.kind == TensorKind::gradient)
      colour = "#b04a85";
    return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\"{} "
                       "marker-end=\"url(#tip)\"><title>{} {}</title></path>\n",
                       path(a, b), colour, crosses ? " stroke-dasharray=\"5 3\"" : "",
                       html_escaped(printable(tensor.name)), shape_text(tensor));
  }

  /// SVG path between two boxes: a line between neighbours in a column, an arc past other boxes of
  /// the column, or a curve between columns.
  static std::string path(const Box& a, const Box& b) {
    if (a.x == b.x) {
      const bool down = a.y < b.y;
      const int from = down ? a.y + kBoxHeight : a.y;
      const int to = down ? b.y : b.y + kBoxHeight;
      const bool neighbours = a.column == kForward && std::abs(a.row - b.row) == 1;
      if (neighbours || std::abs(to - from) <= 2 * kRowGap)
        return fmt::format("M{0} {1}L{0} {2}", a.x + kBoxWidth / 2, from, to);
      const int bulge = std::min(kMargin - 4, 12 + std::abs(to - from) / 20);
      const int y0 = a.y + kBoxHeight / 2;
      const int y1 = b.y + kBoxHeight / 2;
      return fmt::format("M{0} {1}C{2} {1} {2} {3} {0} {3}", a.x, y0, a.x - bulge, y1);
    }
    const bool right = a.x < b.x;
    const int x0 = right ? a.x + kBoxWidth : a.x;
    const int x1 = right ? b.x : b.x + kBoxWidth;
    const int bend = right ? kColumnGap / 2 : -kColumnGap / 2;
    return fmt::format("M{} {}C{} {} {} {} {} {}", x0, a.y + kBoxHeight / 2, x0 + bend,
                       a.y + kBoxHeight / 2, x1 - bend, b.y + kBoxHeight / 2, x1,
                       b.y + kBoxHeight / 2);
  }

  const Graph& graph_;
  const std::vector<std::uint32_t>* groups_;
  std::set<TensorId> stored_;
  std::vector<Box> boxes_;
  std::size_t columns_ = 1;
  int width_ = 0;
  int height_ = 0;
};

} // namespace

std::string graph_svg(const TrainingGraph& step) {
  return Picture(step, nullptr).svg();
}

std::string graph_svg(const TrainingGraph& step, const std::vector<std::uint32_t>& groups) {
  internal_check(groups.size() == step.graph.operators().size(), "one group per operator");
  return Picture(step, &groups).svg();
}

} // namespace monet
