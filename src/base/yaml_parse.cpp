// Text -> YamlNode through yaml-cpp's events, which carry marks and keep duplicate keys.
#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

namespace monet {

namespace {

constexpr std::size_t kMaxNodes = 1'000'000;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxBytes = std::size_t{1} << 26;

/// Builds the tree bottom-up: a stack of open collections, each waiting for its next item.
class TreeBuilder : public YAML::EventHandler {
public:
  explicit TreeBuilder(const std::string& origin) : origin_(origin) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.where = at(mark);
    finish(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    node.scalar = value;
    node.where = at(mark);
    finish(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      throw InputError(at(mark), "alias to a node that is still open");
    count(found->second.nodes, mark);
    attach(found->second.node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::sequence, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, anchor);
  }
  void OnMapEnd() override { close(); }

  YamlNode take() { return std::move(root_); }

private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::size_t nodes_before = 0;
    bool has_key = false;
    YamlNode key;
  };
  struct Anchored {
    YamlNode node;
    std::size_t nodes = 0;
  };

  SourceLoc at(const YAML::Mark& mark) const { return {origin_, mark.line + 1, mark.column + 1}; }

  void count(std::size_t nodes, const YAML::Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes) {
      throw InputError(at(mark),
                       fmt::format("more than {} nodes after expanding aliases", kMaxNodes));
    }
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (stack_.size() >= kMaxDepth) {
      throw InputError(at(mark), fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    Open entry;
    entry.node.kind = kind;
    entry.node.where = at(mark);
    entry.anchor = anchor;
    entry.nodes_before = nodes_;
    stack_.push_back(std::move(entry));
    count(1, mark);
  }

  void close() {
    Open entry = std::move(stack_.back());
    stack_.pop_back();
    remember(entry.anchor, entry.node, nodes_ - entry.nodes_before);
    attach(std::move(entry.node));
  }

  void finish(YamlNode node, YAML::anchor_t anchor) {
    ++nodes_;
    if (nodes_ > kMaxNodes)
      throw InputError(node.where, fmt::format("more than {} nodes", kMaxNodes));
    remember(anchor, node, 1);
    attach(std::move(node));
  }

  void remember(YAML::anchor_t anchor, const YamlNode& node, std::size_t nodes) {
    if (anchor != YAML::NullAnchor)
      anchors_[anchor] = {node, nodes};
  }

  void attach(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind != YamlNode::Kind::scalar)
        throw InputError(node.where, "a key must be a scalar");
      parent.key = std::move(node);
      parent.has_key = true;
    } else {
      parent.node.entries.push_back({parent.key.scalar, parent.key.where, std::move(node)});
      parent.has_key = false;
    }
  }

  const std::string& origin_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  YamlNode root_;
};

void reject_control_bytes(std::string_view text, const std::string& origin) {
  int line = 1;
  int column = 1;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f) {
      throw InputError({origin, line, column},
                       fmt::format("control byte 0x{:02x} in a text file", byte));
    }
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
}

} // namespace

YamlNode parse_yaml(std::string_view text, const std::string& origin) {
  if (text.size() > kMaxBytes)
    throw InputError({origin}, fmt::format("is larger than {} bytes", kMaxBytes));
  reject_control_bytes(text, origin);
  TreeBuilder builder(origin);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder))
      return YamlNode{.where = {origin, 1, 1}};
    YamlNode root = builder.take();
    TreeBuilder second(origin);
    if (parser.HandleNextDocument(second)) {
      throw InputError(second.take().where, "a second document in one file");
    }
    return root;
  } catch (const YAML::Exception& error) {
    const bool marked = !error.mark.is_null();
    throw InputError({origin, marked ? error.mark.line + 1 : 0, marked ? error.mark.column + 1 : 0},
                     "is not valid YAML: " + error.msg);
  }
}

YamlNode load_yaml(const std::string& path) {
  return parse_yaml(read_file(path, kMaxBytes), path);
}

} // namespace monet
