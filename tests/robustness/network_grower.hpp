// The ONNX model that a random network grows in: values that are known so far, nodes that are
// added one by one and read at once, so that their shapes are known.
#pragma once

#include "robustness/random_onnx.hpp"
#include "workload/models.hpp"

#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace monet::testing {

using test::ModelMaker;
using test::Shape;

struct Value {
  std::string name;
  Shape shape;
  int type = onnx::TensorProto::FLOAT;

  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  std::int64_t size(std::int64_t axis) const { return shape[static_cast<std::size_t>(axis)]; }
};

using AttributeValue =
    std::variant<std::int64_t, Shape, double, std::string, std::vector<std::string>>;
using AttributeList = std::vector<std::pair<std::string, AttributeValue>>;

class NetworkGrower {
public:
  /// `type` of the floating tensors.
  NetworkGrower(std::int64_t largest, int type) : largest_(largest), type_(type) {}

  std::int64_t largest() const { return largest_; }
  /// A size from 1 to the largest.
  std::int64_t size(Random& random) const { return random.between(1, largest_); }

  Value input(const Shape& shape);
  /// Indices below `bound`: an input of integers, or constants.
  Value indices(Random& random, const Shape& shape, std::int64_t bound, bool constant);
  Value weight(const Shape& shape, int type);
  std::string integers(const Shape& values);
  std::string floats(const std::vector<double>& values);

  /// InputError where the reader refuses the node, or a result would have too many elements. The
  /// results are values from then on.
  std::vector<Value> add_all(const std::string& op_type, const std::vector<std::string>& inputs,
                             const AttributeList& attributes = {}, std::size_t outputs = 1,
                             const std::string& domain = "");
  Value add(const std::string& op_type, const std::vector<std::string>& inputs,
            const AttributeList& attributes = {}, const std::string& domain = "") {
    return add_all(op_type, inputs, attributes, 1, domain).front();
  }

  /// Some value of the network's floating type, the last one more often than not.
  Value some(Random& random) const;
  /// The same with one axis at least.
  Value with_axes(Random& random);
  /// The same with so many axes: others go into the first or come from nowhere.
  Value of_rank(Random& random, std::int64_t rank);
  /// Of type int64.
  Value reshape(const Value& x, const Shape& to) { return add("Reshape", {x.name, integers(to)}); }

  /// The model is as it was when begin() was last called.
  void begin();
  void undo();
  /// What nobody reads becomes an output, and some of the rest.
  std::string finish(Random& random);

private:
  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }

  std::int64_t largest_;
  int type_;
  std::int64_t names_ = 0;
  ModelMaker model_;
  std::vector<Value> values_;
  std::set<std::string> read_;
  onnx::ModelProto before_;
  std::size_t values_before_ = 0;
};

/// Grows one layer out of `random` numbers.
struct LayerFamily {
  const char* name;
  void (*add)(NetworkGrower&, Random&);
};
const std::vector<LayerFamily>& window_layers();  ///< convolutions, pooling, resizing
const std::vector<LayerFamily>& product_layers(); ///< products, attention, recurrent layers
const std::vector<LayerFamily>& plain_layers();   ///< element by element, reductions, softmax
const std::vector<LayerFamily>& layout_layers();  ///< views, copies, picking

} // namespace monet::testing
