#include "structured/words.hpp"

#include "workload/shared/operators.hpp"

#include <onnx/defs/schema.h>

#include <set>

namespace monet::fuzz {

const std::vector<OperatorName>& operator_names() {
  static const std::vector<OperatorName> names = [] {
    std::vector<OperatorName> list;
    for (const OperatorRow& rule : all_rows())
      list.push_back({std::string(rule.domain), rule.op_type.str()});
    // Those that the reader takes apart itself.
    for (const char* type : {"Shape", "Size", "Range", "NonZero", "ConstantOfShape", "Constant",
                             "If", "Loop", "Scan", "LSTM", "GRU", "RNN", "SequenceConstruct",
                             "SequenceAt", "SplitToSequence", "ConcatFromSequence"})
      list.push_back({"", type});
    return list;
  }();
  return names;
}

const std::vector<std::string>& attribute_names() {
  static const std::vector<std::string> names = [] {
    std::set<std::string> found;
    for (const OperatorName& name : operator_names()) {
      const auto* schema = onnx::OpSchemaRegistry::Schema(name.op_type, name.domain);
      if (schema == nullptr)
        continue;
      for (const auto& [attribute, declared] : schema->attributes())
        found.insert(attribute);
    }
    return std::vector<std::string>(found.begin(), found.end());
  }();
  return names;
}

const std::vector<std::string_view>& text_words() {
  static const std::vector<std::string_view> words{
#include "text_words.inc"
  };
  return words;
}

std::string dictionary() {
  std::set<std::string, std::less<>> words(attribute_names().begin(), attribute_names().end());
  for (const OperatorName& name : operator_names())
    words.insert(name.op_type);
  words.insert(text_words().begin(), text_words().end());
  std::string text;
  for (const std::string& word : words)
    text += '"' + word + "\"\n";
  return text;
}

} // namespace monet::fuzz
