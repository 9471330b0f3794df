// Attributes: values beyond what operators allow and beyond 32 bits, other kinds, other names.
#include "structured/onnx_parts.hpp"
#include "structured/words.hpp"

namespace monet::fuzz {

namespace {

using onnx::AttributeProto;

onnx::NodeProto* some_node(const Place& place) {
  return some(*place.graph.mutable_node(), place.random);
}

AttributeProto* some_attribute(const Place& place) {
  for (int tries = 0; tries < 4; ++tries) {
    onnx::NodeProto* node = some_node(place);
    AttributeProto* found =
        node == nullptr ? nullptr : some(*node->mutable_attribute(), place.random);
    if (found != nullptr)
      return found;
  }
  return nullptr;
}

/// Words that attributes of text take, and one that none takes.
std::string some_text(Random& random) {
  constexpr const char* kTexts[]{"SAME_UPPER",
                                 "SAME_LOWER",
                                 "VALID",
                                 "NOTSET",
                                 "constant",
                                 "reflect",
                                 "edge",
                                 "wrap",
                                 "nearest",
                                 "linear",
                                 "cubic",
                                 "bilinear",
                                 "bicubic",
                                 "half_pixel",
                                 "asymmetric",
                                 "align_corners",
                                 "pytorch_half_pixel",
                                 "floor",
                                 "ceil",
                                 "DCR",
                                 "CRD",
                                 "forward",
                                 "reverse",
                                 "mean",
                                 "sum",
                                 "none",
                                 "add",
                                 "mul",
                                 "avg",
                                 "max",
                                 "tanh",
                                 "bidirectional",
                                 "zeros",
                                 "border",
                                 "reflection",
                                 "bij,bjk->bik",
                                 "ij->ji",
                                 "...i->...",
                                 "ii->i",
                                 "",
                                 "\xff"};
  return random.pick(kTexts);
}

void set_list(AttributeProto& attribute, Random& random) {
  auto& ints = *attribute.mutable_ints();
  if (ints.empty() || random.one_in(6))
    ints.Add(random.integer());
  else if (random.one_in(6))
    ints.RemoveLast();
  else
    ints.Set(random.index(ints.size()), random.integer());
}

/// By its kind.
bool change_value(const Place& place) {
  Random& random = place.random;
  AttributeProto* attribute = some_attribute(place);
  if (attribute == nullptr)
    return false;
  switch (attribute->type()) {
  case AttributeProto::INT:
    attribute->set_i(random.integer());
    return true;
  case AttributeProto::INTS:
    set_list(*attribute, random);
    return true;
  case AttributeProto::FLOAT:
    attribute->set_f(static_cast<float>(random.real()));
    return true;
  case AttributeProto::FLOATS:
    attribute->add_floats(static_cast<float>(random.real()));
    return true;
  case AttributeProto::STRING:
    attribute->set_s(some_text(random));
    return true;
  default:
    return false;
  }
}

void set_kind(AttributeProto& attribute, Random& random) {
  switch (random.below(6)) {
  case 0:
    attribute.set_type(AttributeProto::INT);
    attribute.set_i(random.integer());
    break;
  case 1:
    attribute.set_type(AttributeProto::INTS);
    set_list(attribute, random);
    break;
  case 2:
    attribute.set_type(AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(random.real()));
    break;
  case 3:
    attribute.set_type(AttributeProto::STRING);
    attribute.set_s(some_text(random));
    break;
  case 4:
    attribute.set_type(AttributeProto::TENSOR);
    attribute.mutable_t()->set_data_type(some_type(random));
    break;
  default: // the type alone, with the value of another
    attribute.set_type(static_cast<onnx::AttributeProto_AttributeType>(random.index(11)));
    break;
  }
}

bool change_kind(const Place& place) {
  AttributeProto* attribute = some_attribute(place);
  if (attribute != nullptr)
    set_kind(*attribute, place.random);
  return attribute != nullptr;
}

bool rename(const Place& place) {
  AttributeProto* attribute = some_attribute(place);
  if (attribute != nullptr)
    attribute->set_name(place.random.pick(attribute_names()));
  return attribute != nullptr;
}

bool add_attribute(const Place& place) {
  onnx::NodeProto* node = some_node(place);
  if (node == nullptr)
    return false;
  AttributeProto& attribute = *node->add_attribute();
  attribute.set_name(place.random.pick(attribute_names()));
  set_kind(attribute, place.random);
  return true;
}

bool remove_or_copy(const Place& place) {
  onnx::NodeProto* node = some_node(place);
  if (node == nullptr || node->attribute_size() == 0)
    return false;
  if (place.random.one_in(2))
    return remove_some(*node->mutable_attribute(), place.random);
  const AttributeProto copy = node->attribute(place.random.index(node->attribute_size()));
  *node->add_attribute() = copy;
  return true;
}

} // namespace

const std::vector<Mutation>& attribute_mutations() {
  static const std::vector<Mutation> mutations{change_value,  change_value, change_value,
                                               change_value,  change_kind,  add_attribute,
                                               add_attribute, rename,       remove_or_copy};
  return mutations;
}

} // namespace monet::fuzz
