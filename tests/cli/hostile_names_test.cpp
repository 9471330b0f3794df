// A network whose names try to break out of whatever they are written into.
#include "cli/run_monet.hpp"
#include "report/trace_rules.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

namespace monet::test {
namespace {

void set_matrix(onnx::ValueInfoProto& value, const std::string& name, int rows, int columns) {
  value.set_name(name);
  auto* type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_value(rows);
  type->mutable_shape()->add_dim()->set_dim_value(columns);
}

std::string network_named(const std::string& name) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(name);
  set_matrix(*graph.add_input(), name + "x", 2, 8);
  set_matrix(*graph.add_output(), name + "y", 2, 4);
  onnx::TensorProto& weight = *graph.add_initializer();
  weight.set_name(name + "w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.add_dims(8);
  weight.add_dims(4);
  weight.set_raw_data(std::string(8 * 4 * 4, '\0'));
  onnx::NodeProto& node = *graph.add_node();
  node.set_name(name);
  node.set_op_type("MatMul");
  node.add_input(name + "x");
  node.add_input(name + "w");
  node.add_output(name + "y");
  return model.SerializeAsString();
}

std::string yaml_for(const std::string& network) {
  return "name: \"</title><script>alert(1)</script>\"\nworkload: {network: " + network +
         "}\ntraining: {loss: mse}\nhardware: " + repository("data/hardware/edge_tpu.yaml") + "\n";
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

TEST(HostileNames, StayData) {
  const Scratch scratch;
  scratch.file("plain.onnx", network_named("n"));
  scratch.file("hostile.onnx",
               network_named("</script><img src=x onerror=alert(1)>\"'\\\n\x1B[2J\x01\xFF\xC3"));
  scratch.file("plain.yaml", yaml_for("plain.onnx"));
  scratch.file("hostile.yaml", yaml_for("hostile.onnx"));
  const Ran plain = run_monet({"run", "plain.yaml"}, scratch.path());
  ASSERT_EQ(plain.code, 0) << plain.err;
  const Ran hostile = run_monet({"run", "hostile.yaml"}, scratch.path());
  ASSERT_EQ(hostile.code, 0) << hostile.err;
  EXPECT_EQ(hostile.out.find('\x1B'), std::string::npos);

  const auto result = parse_file(scratch / "out/hostile/result.json");
  EXPECT_EQ(result.at("layers").at(0).at("name"),
            "</script><img src=x onerror=alert(1)>\"'\\\n\x1B[2J\x01\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(trace_violations(parse_file(scratch / "out/hostile/trace.json")),
            std::vector<std::string>{});
  const std::string page = read_file(scratch / "out/hostile/report.html");
  const std::string plain_page = read_file(scratch / "out/plain/report.html");
  for (const char* markup : {"<script", "</script", "<img", "</title"}) {
    EXPECT_EQ(count(page, markup), count(plain_page, markup)) << markup;
  }
  const Ran graph = run_monet({"graph", "hostile.onnx"}, scratch.path());
  EXPECT_EQ(graph.code, 0) << graph.err;
  EXPECT_EQ(graph.out.find('\x1B'), std::string::npos);
}

} // namespace
} // namespace monet::test
