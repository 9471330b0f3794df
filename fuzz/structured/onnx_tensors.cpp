// Element types, shapes, and constants: how they are stored, and what they are.
#include "structured/onnx_parts.hpp"

#include <cstring>

namespace monet::fuzz {

namespace {

using onnx::TensorProto;

std::int64_t some_size(Random& random) {
  return random.one_in(8) ? random.integer() : static_cast<std::int64_t>(random.below(9));
}

/// A tensor that an input, an output or a value_info describes; null where there is none.
onnx::TypeProto_Tensor* some_description(const Place& place) {
  onnx::GraphProto& graph = place.graph;
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* lists[]{
      graph.mutable_input(), graph.mutable_input(), graph.mutable_output(),
      graph.mutable_value_info()};
  auto* info = some(*place.random.pick(lists), place.random);
  return info == nullptr ? nullptr : info->mutable_type()->mutable_tensor_type();
}

bool change_described_type(const Place& place) {
  auto* tensor = some_description(place);
  if (tensor != nullptr)
    tensor->set_elem_type(some_type(place.random));
  return tensor != nullptr;
}

bool change_described_shape(const Place& place) {
  Random& random = place.random;
  auto* tensor = some_description(place);
  if (tensor == nullptr)
    return false;
  auto& shape = *tensor->mutable_shape();
  auto* dim = some(*shape.mutable_dim(), random);
  switch (random.below(dim == nullptr ? 1 : 8)) {
  case 0:
    shape.add_dim()->set_dim_value(some_size(random));
    return true;
  case 1:
    return remove_some(*shape.mutable_dim(), random);
  case 2:
    dim->set_dim_param(random.one_in(2) ? "batch" : "n");
    return true;
  case 3:
    dim->clear_value();
    return true;
  case 4:
    if (random.one_in(8))
      tensor->clear_shape();
    return true;
  default:
    dim->set_dim_value(some_size(random));
    return true;
  }
}

/// An initialiser, or the tensor of an attribute (Constant); null where there is none.
TensorProto* some_constant(const Place& place) {
  std::vector<TensorProto*> found;
  for (TensorProto& tensor : *place.graph.mutable_initializer())
    found.push_back(&tensor);
  for (onnx::NodeProto& node : *place.graph.mutable_node()) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t())
        found.push_back(attribute.mutable_t());
    }
  }
  return found.empty() ? nullptr : place.random.pick(found);
}

bool change_constant_type(const Place& place) {
  TensorProto* tensor = some_constant(place);
  if (tensor != nullptr)
    tensor->set_data_type(some_type(place.random));
  return tensor != nullptr;
}

bool change_constant_shape(const Place& place) {
  Random& random = place.random;
  TensorProto* tensor = some_constant(place);
  if (tensor == nullptr)
    return false;
  auto& dims = *tensor->mutable_dims();
  if (dims.empty() || random.one_in(4))
    dims.Add(some_size(random));
  else if (random.one_in(4))
    dims.RemoveLast();
  else
    dims.Set(random.index(dims.size()), some_size(random));
  return true;
}

/// Puts a number of this type into the raw bytes, at a place of such a number.
template <class Number>
void set_raw(std::string& raw, Number number, Random& random) {
  if (raw.size() < sizeof number)
    raw.resize(sizeof number);
  const std::size_t at = random.below(raw.size() / sizeof number) * sizeof number;
  std::memcpy(raw.data() + at, &number, sizeof number);
}

void change_raw(TensorProto& tensor, Random& random) {
  std::string& raw = *tensor.mutable_raw_data();
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    return set_raw(raw, static_cast<float>(random.real()), random);
  case TensorProto::DOUBLE:
    return set_raw(raw, random.real(), random);
  case TensorProto::INT32:
  case TensorProto::UINT32:
    return set_raw(raw, static_cast<std::int32_t>(random.integer()), random);
  case TensorProto::INT64:
  case TensorProto::UINT64:
    return set_raw(raw, random.integer(), random);
  default:
    return set_raw(raw, static_cast<std::uint8_t>(random.integer()), random);
  }
}

template <class Field, class Number>
bool set_some(Field& field, Number number, Random& random) {
  if (!field.empty())
    field.Set(random.index(field.size()), number);
  return !field.empty();
}

/// Values of constants: indices, shapes, pads, scales.
bool change_constant_value(const Place& place) {
  Random& random = place.random;
  TensorProto* tensor = some_constant(place);
  if (tensor == nullptr)
    return false;
  const auto whole = random.integer();
  if (set_some(*tensor->mutable_int64_data(), whole, random) ||
      set_some(*tensor->mutable_int32_data(), static_cast<std::int32_t>(whole), random) ||
      set_some(*tensor->mutable_uint64_data(), static_cast<std::uint64_t>(whole), random) ||
      set_some(*tensor->mutable_float_data(), static_cast<float>(random.real()), random) ||
      set_some(*tensor->mutable_double_data(), random.real(), random))
    return true;
  change_raw(*tensor, random);
  return true;
}

/// More or fewer numbers than there are.
bool change_constant_length(const Place& place) {
  Random& random = place.random;
  TensorProto* tensor = some_constant(place);
  if (tensor == nullptr)
    return false;
  if (tensor->has_raw_data()) {
    std::string& raw = *tensor->mutable_raw_data();
    raw.resize(raw.size() > 0 && random.one_in(2) ? random.below(raw.size())
                                                  : raw.size() + random.below(16));
  } else if (tensor->int64_data_size() > 0 && random.one_in(2)) {
    tensor->mutable_int64_data()->RemoveLast();
  } else if (tensor->data_type() == TensorProto::INT64) {
    tensor->add_int64_data(random.integer());
    if (tensor->dims_size() == 1 && random.one_in(2))
      tensor->set_dims(0, tensor->int64_data_size());
  } else {
    tensor->add_float_data(static_cast<float>(random.real()));
  }
  return true;
}

/// Raw bytes in place of typed fields and the other way round; the wrong field of a type.
bool change_constant_storage(const Place& place) {
  Random& random = place.random;
  TensorProto* tensor = some_constant(place);
  if (tensor == nullptr)
    return false;
  switch (random.below(5)) {
  case 0: {
    std::string raw;
    for (const std::int64_t number : tensor->int64_data())
      raw.append(reinterpret_cast<const char*>(&number), sizeof number);
    for (const float number : tensor->float_data())
      raw.append(reinterpret_cast<const char*>(&number), sizeof number);
    tensor->clear_int64_data();
    tensor->clear_float_data();
    if (!raw.empty())
      tensor->set_raw_data(raw);
    return true;
  }
  case 1:
    for (std::size_t i = 0; i + sizeof(std::int64_t) <= tensor->raw_data().size() && i < 256;
         i += sizeof(std::int64_t)) {
      std::int64_t number = 0;
      std::memcpy(&number, tensor->raw_data().data() + i, sizeof number);
      tensor->add_int64_data(number);
    }
    tensor->clear_raw_data();
    return true;
  case 2:
    tensor->set_data_location(random.one_in(2) ? TensorProto::EXTERNAL : TensorProto::DEFAULT);
    return true;
  case 3:
    tensor->add_string_data("x");
    return true;
  default:
    tensor->add_int32_data(static_cast<std::int32_t>(random.integer()));
    return true;
  }
}

bool remove_or_copy_constant(const Place& place) {
  auto& list = *place.graph.mutable_initializer();
  TensorProto* tensor = some(list, place.random);
  if (tensor == nullptr)
    return false;
  if (place.random.one_in(2))
    return remove_some(list, place.random);
  const TensorProto copy = *tensor;
  TensorProto& added = *list.Add();
  added = copy;
  if (place.random.one_in(2))
    added.set_name(some_tensor(place));
  return true;
}

/// An input that was a constant, or a constant that was an input.
bool exchange_input_and_constant(const Place& place) {
  Random& random = place.random;
  onnx::GraphProto& graph = place.graph;
  if (random.one_in(2) && graph.initializer_size() > 0) {
    const int at = random.index(graph.initializer_size());
    const TensorProto tensor = graph.initializer(at);
    auto& info = *graph.add_input();
    info.set_name(tensor.name());
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    for (const std::int64_t size : tensor.dims())
      type.mutable_shape()->add_dim()->set_dim_value(size);
    if (random.one_in(2))
      graph.mutable_initializer()->DeleteSubrange(at, 1);
    return true;
  }
  if (graph.input_size() == 0)
    return false;
  TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(graph.input(random.index(graph.input_size())).name());
  tensor.set_data_type(TensorProto::INT64);
  for (std::size_t i = random.below(5); i > 0; --i)
    tensor.add_int64_data(random.integer());
  if (tensor.int64_data_size() != 1)
    tensor.add_dims(tensor.int64_data_size());
  return true;
}

} // namespace

int some_type(Random& random) {
  constexpr int kCommon[]{TensorProto::FLOAT, TensorProto::INT64,   TensorProto::INT32,
                          TensorProto::BOOL,  TensorProto::FLOAT16, TensorProto::DOUBLE};
  return random.one_in(3) ? random.index(24) : random.pick(kCommon);
}

const std::vector<Mutation>& tensor_mutations() {
  static const std::vector<Mutation> mutations{
      change_described_type,   change_described_shape,      change_described_shape,
      change_constant_type,    change_constant_shape,       change_constant_value,
      change_constant_value,   change_constant_value,       change_constant_length,
      change_constant_storage, exchange_input_and_constant, remove_or_copy_constant};
  return mutations;
}

} // namespace monet::fuzz
