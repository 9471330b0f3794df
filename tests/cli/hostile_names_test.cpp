// Names that try to break out of whatever they are written into: of networks, chips, spaces, stores
// and files. Terminals get text, pages data; browser tests open the pages that this leaves in
// hostile_pages of the build folder.
#include "cli/run_monet.hpp"
#include "report/trace_rules.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

namespace monet::test {
namespace {

/// What a terminal may get: well-formed UTF-8 without controls but line feeds, and nothing that
/// cannot be seen or turns the direction of writing.
void expect_tame(const std::string& text, const std::string& what) {
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
    unsigned code = length == 1 ? byte(0) : byte(0) & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
      ASSERT_EQ(byte(i) & 0xC0U, 0x80U) << what << ": ill-formed UTF-8 at byte " << at;
      code = (code << 6) | (byte(i) & 0x3FU);
    }
    const bool control = (code < 0x20 && code != '\n') || (code >= 0x7F && code < 0xA0);
    const bool unseen = (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
                        (code >= 0x2060 && code <= 0x206F) || code == 0x61C || code == 0xFEFF;
    ASSERT_FALSE(control || unseen) << what << ": U+" << std::hex << code << " at byte " << at;
    at += length;
  }
}

/// Runs, and looks at all that is printed.
Ran tame(const std::vector<std::string>& arguments, const std::filesystem::path& folder = ".") {
  const Ran ran = run_monet(arguments, folder);
  const std::string what = arguments[0] + " " + (arguments.size() > 1 ? arguments[1] : "");
  expect_tame(ran.out, what);
  expect_tame(ran.err, what);
  return ran;
}

const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> names{
      "mallory</script><script>window.__hacked=1</script><!--",
      "mallory\"'`><img src=x onerror=\"window.__hacked=1\">]]>${window.__hacked=1}",
      "mallory \xE2\x80\xAEgnp.exe\xE2\x81\xA6 \xE2\x80\xA8\xD8\x9C\xEF\xBB\xBF",
      "mallory\x1B[2J\x1B]0;owned\x07\r\nerror: forged\t\b\x7F\xC2\x9B",
      "mallory\xFF\xFE\xC3(\xED\xA0\x80",
      "mallory" + std::string(3000, 'A') + "<b>",
      "mallory\xE5\xBC\xA0\xE4\xBC\x9F e\xCC\x81 __proto__ javascript:window.__hacked=1"};
  return names;
}

void set_matrix(onnx::ValueInfoProto& value, const std::string& name, int rows, int columns) {
  value.set_name(name);
  auto* type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_value(rows);
  type->mutable_shape()->add_dim()->set_dim_value(columns);
}

/// A product for each name, one behind the other, with weights of that name.
std::string network_named(const std::vector<std::string>& names) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_doc_string(names[0]);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(names[0]);
  graph.set_doc_string(names[0]);
  std::string last = names[0] + "x";
  set_matrix(*graph.add_input(), last, 2, 8);
  for (const std::string& name : names) {
    onnx::TensorProto& weight = *graph.add_initializer();
    weight.set_name(name + "w");
    weight.set_data_type(onnx::TensorProto::FLOAT);
    weight.add_dims(8);
    weight.add_dims(8);
    weight.set_raw_data(std::string(8 * 8 * 4, '\0'));
    onnx::NodeProto& node = *graph.add_node();
    node.set_name(name);
    node.set_doc_string(name);
    node.set_op_type("MatMul");
    node.add_input(last);
    node.add_input(name + "w");
    node.add_output(last = name + "y");
  }
  set_matrix(*graph.add_output(), last, 2, 8);
  return model.SerializeAsString();
}

std::string network_named(const std::string& name) {
  return network_named(std::vector<std::string>{name});
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

/// The pages for the browser's tests.
class HostilePages : public ::testing::Test {
protected:
  HostilePages() {
    std::filesystem::create_directories(kPages);
    scratch_.file("net.onnx", network_named(hostile_names()));
    chip("edge_tpu_pe", "mallory\\e[2J <img src=x onerror=window.__hacked=1>");
  }

  /// The shipped chip with its elements, and their memories of weights, called so in YAML.
  void chip(const std::string& old, const std::string& name) {
    namespace fs = std::filesystem;
    fs::copy(repository("data/hardware"), scratch_ / "hardware", fs::copy_options::recursive);
    const std::string core = scratch_ / ("hardware/cores/" + old + ".yaml");
    std::string text = read_file(core);
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"name: " + old, "name: \"" + name + "\""}, {"rf_weights:", "\"" + name + "\":"}}) {
      const std::size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos);
      text.replace(at, from.size(), to);
    }
    write_file_atomically(core, text);
  }

  void keep(const std::string& file, const std::string& name) const {
    write_file_atomically(std::string(kPages) + "/" + name, read_file(scratch_ / file));
  }

  static constexpr const char* kPages = MONET_PAGES;
  Scratch scratch_;
  const std::string system_ = scratch_ / "hardware/edge_tpu.yaml";
  const std::string network_ = scratch_ / "net.onnx";
};

TEST_F(HostilePages, OfAStepAreTame) {
  scratch_.file("t.yaml", "loss: mse\n");
  EXPECT_EQ(
      tame({"graph", network_, "--training", scratch_ / "t.yaml", "--svg", scratch_ / "graph.svg"})
          .code,
      0);
  keep("graph.svg", "graph.svg");
  const Ran json = tame({"graph", network_, "--inference", "--json", "-"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at("layers").at(1).at("name"), hostile_names()[1]);
  EXPECT_EQ(nlohmann::json::parse(json.out).at("layers").at(2).at("name"), hostile_names()[2]);
  EXPECT_EQ(nlohmann::json::parse(json.out).at("layers").at(3).at("name"), hostile_names()[3]);
  EXPECT_EQ(tame({"graph", network_, "--inference", "--execute"}).code, 0);
  EXPECT_EQ(tame({"core", "--hardware", scratch_ / "hardware/cores/edge_tpu_pe.yaml", "--workload",
                  network_})
                .code,
            0);
  EXPECT_EQ(tame({"core", "--hardware", system_, "--memories"}).code, 0);
  scratch_.file(
      "e.yaml",
      "name: \"mallory</title><script>window.__hacked=1</script>\\e[2J\\u202e\"\n"
      "workload: {network: net.onnx}\ntraining: {loss: mse}\nhardware: hardware/edge_tpu.yaml\n");
  const Ran run = tame({"run", "e.yaml", "-o", "out\x1B[2J\nerror: forged"}, scratch_.path());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out.find("\nerror: "), std::string::npos);
  keep("out\x1B[2J\nerror: forged/report.html", "step.html");
  for (const char* search : {"fusion", "allocation", "checkpointing", "joint"}) {
    const Ran ran =
        tame({"optimise", search, "--hardware", system_, "--workload", network_, "--training",
              scratch_ / "t.yaml", "--time-limit", "1", "--report", scratch_ / search});
    EXPECT_EQ(ran.code, 0) << search << ran.err;
    keep(std::string(search) + "/report.html", std::string(search) + ".html");
  }
}

TEST_F(HostilePages, OfAnExplorationAreTame) {
  std::string text = read_file(repository("data/spaces/edge_study.yaml"));
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("name: edge of the study",
          "name: \"mallory</script><script>window.__hacked=1</script>\\e[2J\\u202e\"");
  replace("../workload/resnet18_cifar.onnx, batch: 4", "net.onnx");
  replace("loss: cross_entropy", "loss: mse");
  replace("    name: element", "    name: \"<img src=x onerror=window.__hacked=1>\"");
  replace("      rf_weights:", "      \"<img src=x onerror=window.__hacked=1>\\e[2J\":");
  scratch_.file("space.yaml", text);
  const std::string name = "mallory\x1B[2J\n<script>window.__hacked=1<";
  const auto explore = [&](const std::string& seed, const std::string& folder) {
    return tame({"explore", "space.yaml", "--strategy", "random", "--budget", "6", "--seed", seed,
                 "--jobs", "1", "--store", name + seed + ".db", "-o", folder, "--export-csv",
                 name + ".csv"},
                scratch_.path());
  };
  Ran ran = explore("1", name);
  EXPECT_EQ(ran.code, 0) << ran.err;
  ran = explore("2", "b");
  EXPECT_EQ(ran.code, 0) << ran.err;
  keep(name + "/report.html", "exploration.html");
  ran = tame({"explore", "--compare", name + "/explore.json", name + "2.db", "-o", "c"},
             scratch_.path());
  EXPECT_EQ(ran.code, 0) << ran.err;
  keep("c/compare.html", "comparison.html");
  const auto reports = parse_file(scratch_ / (name + "/explore.json")).at("reports");
  ASSERT_FALSE(reports.empty());
  keep(name + "/designs/" + reports[0].get<std::string>() + "/report.html", "design.html");
}

// Every problem is a line, whatever it quotes.
TEST_F(HostilePages, MessagesAreTame) {
  for (const std::string& name : hostile_names()) {
    if (name.find('\0') != std::string::npos)
      continue;
    const std::string file = name.substr(0, 200);
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"graph", file},
                                               {"run", file},
                                               {"report", file, "-o", "page.html"},
                                               {"schedule", "--hardware", file, "--workload", file},
                                               {"explore", file},
                                               {"graph", network_, "--json", file + "/" + file}}) {
      const Ran ran = tame(command, scratch_.path());
      EXPECT_TRUE(ran.code == 3 || ran.code == 5) << command[0] << ran.err;
      EXPECT_EQ(ran.err.find("\nerror: forged"), std::string::npos) << command[0] << ran.err;
    }
    EXPECT_EQ(tame({name}).code, 2);
    EXPECT_EQ(tame({"graph", network_, "--" + name}).code, 2);
    EXPECT_EQ(tame({"graph", network_, "--dim", name + "="}).code, 2);
    EXPECT_EQ(tame({"graph", network_, "--execute", "--numbers", name + "=x.npy"}).code, 3);
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(network_named(name)));
    model.mutable_graph()->mutable_node(0)->set_op_type(name);
    scratch_.file("unknown.onnx", model.SerializeAsString());
    EXPECT_EQ(tame({"graph", scratch_ / "unknown.onnx"}).code, 3);
    scratch_.file("wrong.yaml", "\"\\e[2J\\u202e\\nerror: forged\": 1\nworkload: \"\\e[2J\"\n");
    const Ran ran = tame({"run", scratch_ / "wrong.yaml"});
    EXPECT_EQ(ran.code, 3);
    EXPECT_EQ(ran.err.find("\nerror: forged"), std::string::npos) << ran.err;
  }
}

} // namespace
} // namespace monet::test
