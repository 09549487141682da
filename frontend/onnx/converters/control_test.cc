// If, Loop and Scan, and local functions: what takes their place, and what is
// declined.
#include <string>
#include <vector>

#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::onnx {
namespace {

using ::testing::HasSubstr;

void ExpectError(const ModelBuilder& model, absl::StatusCode code, const std::string& message) {
  const auto graph = Parse(model.Bytes(), "m.onnx", Ops());
  EXPECT_EQ(graph.status().code(), code) << graph.status();
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr(message));
}

// torchvision's Swin is exported so.
TEST(Dropout, OfNothingInTrainingIsTheInput) {
  for (const float ratio : {0.0f, 0.5f}) {
    ModelBuilder model(13);
    model.Input("x", {2}).Output("y").Initializer("r", Tensor::Scalar(ratio)).Initializer("t", Tensor::Scalar(true));
    model.Node("Dropout", {"x", "r", "t"}, {"y"});
    if (ratio == 0) {
      ExpectOutput(model, {F32({2}, {-1, 2})}, F32({2}, {-1, 2}));
    } else {
      ExpectError(model, absl::StatusCode::kUnimplemented, "found training_mode = true, wanted inference");
    }
  }
}

// The last node's attribute `name` is the graph of `body`.
void SetBody(ModelBuilder& model, const std::string& name, ModelBuilder& body) {
  auto* attribute = model.last_node().add_attribute();
  attribute->set_name(name);
  attribute->set_type(schema::AttributeProto::GRAPH);
  *attribute->mutable_g() = body.graph();
}

ModelBuilder Model(std::vector<Dim> dims) {
  ModelBuilder model(13);
  model.Input("x", std::move(dims)).Output("y");
  return model;
}

ModelBuilder Branch(const std::string& op) {
  ModelBuilder branch(13);
  branch.Node(op, {"x"}, {"r"}).Output("r");
  return branch;
}

ModelBuilder IfModel(bool condition) {
  ModelBuilder model = Model({2});
  ModelBuilder then_branch = Branch("Relu"), else_branch = Branch("Identity");
  model.Initializer("c", Tensor::Scalar(condition)).Node("If", {"c"}, {"y"}, "if");
  SetBody(model, "then_branch", then_branch);
  SetBody(model, "else_branch", else_branch);
  return model;
}

// Branches read what is around them.
TEST(If, TakesTheBranchOfAConstantCondition) {
  ExpectOutput(IfModel(true), {F32({2}, {-1, 2})}, F32({2}, {0, 2}));
  ExpectOutput(IfModel(false), {F32({2}, {-1, 2})}, F32({2}, {-1, 2}));
}

ModelBuilder ComputedIfModel(std::vector<Dim> condition, DType dtype = DType::kBool) {
  ModelBuilder model = IfModel(true);
  model.graph().clear_initializer();
  model.Input("c", std::move(condition), dtype);
  return model;
}

TEST(If, SelectsByAComputedCondition) {
  for (const bool condition : {true, false}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}}) {
      Tensor c(TensorType{DType::kBool, shape});
      *c.data<bool>() = condition;
      ExpectOutput(ComputedIfModel({shape.begin(), shape.end()}), {F32({2}, {-1, 2}), c},
                   F32({2}, {condition ? 0.0f : -1.0f, 2}));
    }
  }
}

TEST(If, DeclinesAComputedConditionOfUnlikeBranches) {
  ModelBuilder model = ComputedIfModel({});
  auto* otherwise = model.last_node().mutable_attribute(1)->mutable_g()->mutable_node(0);
  otherwise->set_op_type("Concat");
  otherwise->add_input("x");
  auto* axis = otherwise->add_attribute();
  axis->set_name("axis");
  axis->set_type(schema::AttributeProto::INT);
  ExpectError(model, absl::StatusCode::kUnimplemented,
              "node 'if' (If): output 0: found f32[2] of one branch and f32[4] of the other");
  ExpectError(ComputedIfModel({2}), absl::StatusCode::kInvalidArgument, "input 0: found bool[2], wanted one element");
  ExpectError(ComputedIfModel({}, DType::kF32), absl::StatusCode::kInvalidArgument, "input 0: found f32[], wanted one");
}

TEST(If, ChecksItsBranches) {
  ModelBuilder undefined = IfModel(true);
  undefined.last_node().mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(0, "nobody");
  ExpectError(undefined, absl::StatusCode::kInvalidArgument, "found the undefined input 'nobody'");
  ModelBuilder unknown = IfModel(false);
  unknown.last_node().mutable_attribute(0)->mutable_g()->mutable_node(0)->set_op_type("Nonsense");
  ExpectError(unknown, absl::StatusCode::kUnimplemented, "'Nonsense': 1 node");
  ModelBuilder without = IfModel(true);
  without.last_node().clear_attribute();
  ExpectError(without, absl::StatusCode::kInvalidArgument, "found no subgraph 'then_branch'");
  ModelBuilder outputs = IfModel(true);
  outputs.last_node().add_output("z");
  ExpectError(outputs, absl::StatusCode::kInvalidArgument, "found 1 outputs of the branch, wanted 2");
}

// s = s + x, and each s is put out.
ModelBuilder LoopModel(int64_t trips, bool with_limit = true) {
  ModelBuilder body(13);
  body.Input("i", {}, DType::kI64).Input("c", {}, DType::kBool).Input("s", {2});
  body.Node("Identity", {"c"}, {"c_out"}).Node("Add", {"s", "x"}, {"s_out"}).Node("Identity", {"s_out"}, {"row"});
  body.Output("c_out", DType::kBool).Output("s_out").Output("row");
  ModelBuilder model = Model({2});
  model.Initializer("m", Tensor::Scalar(trips)).Initializer("zero", F32({2}, {0, 0}));
  model.Node("Loop", {with_limit ? "m" : "", "", "zero"}, {"last", "y"}, "loop");
  SetBody(model, "body", body);
  return model;
}

TEST(Loop, Unrolls) {
  ExpectOutput(LoopModel(3), {F32({2}, {1, 2})}, F32({3, 2}, {1, 2, 2, 4, 3, 6}));
  ModelBuilder none = LoopModel(0);
  none.graph().mutable_output(0)->set_name("last");
  ExpectOutput(none, {F32({2}, {1, 2})}, F32({2}, {0, 0}));
  ExpectError(LoopModel(0), absl::StatusCode::kUnimplemented, "found no iteration");
  ExpectError(LoopModel(int64_t{1} << 40), absl::StatusCode::kResourceExhausted, "node 'loop' (Loop): ");
  ExpectError(LoopModel(0, /*with_limit=*/false), absl::StatusCode::kResourceExhausted, "iterations and calls");
}

TEST(Loop, StopsWhereItsConditionSaysSo) {
  ModelBuilder model = LoopModel(5);
  auto* body = model.last_node().mutable_attribute(0)->mutable_g();
  body->mutable_node(0)->clear_input();
  body->mutable_node(0)->set_op_type("Constant");
  auto* value = body->mutable_node(0)->add_attribute();
  value->set_name("value");
  value->set_type(schema::AttributeProto::TENSOR);
  *value->mutable_t() = ToProto("", Tensor::Scalar(false));
  ExpectOutput(model, {F32({2}, {1, 2})}, F32({1, 2}, {1, 2}));
}

TEST(Loop, DeclinesAComputedCondition) {
  ModelBuilder model = LoopModel(2);
  auto* body = model.last_node().mutable_attribute(0)->mutable_g();
  body->mutable_node(0)->set_op_type("Cast");
  body->mutable_node(0)->set_input(0, "s");
  auto* to = body->mutable_node(0)->add_attribute();
  to->set_name("to");
  to->set_type(schema::AttributeProto::INT);
  to->set_i(schema::TensorProto::BOOL);
  ExpectError(model, absl::StatusCode::kUnimplemented, "iteration 0: found a computed condition");
}

TEST(Scan, StepsAlongAnAxis) {
  ModelBuilder body(13);
  body.Input("s", {2}).Input("e", {2}).Node("Add", {"s", "e"}, {"sum"}).Node("Identity", {"sum"}, {"row"});
  body.Output("sum").Output("row");
  ModelBuilder model = Model({2, 3});
  model.Initializer("zero", F32({2}, {0, 0})).Node("Scan", {"zero", "x"}, {"last", "y"}).Int("num_scan_inputs", 1);
  model.Ints("scan_input_axes", {1}).Ints("scan_input_directions", {1}).Ints("scan_output_axes", {-1});
  SetBody(model, "body", body);
  ExpectOutput(model, {F32({2, 3}, {1, 2, 3, 4, 5, 6})}, F32({2, 3}, {3, 5, 6, 6, 11, 15}));
}

// --- Local functions.

// local.Scale(x) = LeakyRelu(x; alpha = slope)
ModelBuilder FunctionModel() {
  ModelBuilder model = Model({2});
  auto* import = model.proto().add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  auto* function = model.proto().add_functions();
  function->set_domain("local");
  function->set_name("Scale");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("slope");
  *function->add_opset_import() = model.proto().opset_import(0);
  auto* node = function->add_node();
  node->set_op_type("LeakyRelu");
  node->add_input("a");
  node->add_output("b");
  auto* alpha = node->add_attribute();
  alpha->set_name("alpha");
  alpha->set_type(schema::AttributeProto::FLOAT);
  alpha->set_ref_attr_name("slope");
  model.Node("Scale", {"x"}, {"t"}, "first").Float("slope", 0.5f);
  model.last_node().set_domain("local");
  model.Node("Scale", {"t"}, {"y"}, "second").Float("slope", 0.25f);
  model.last_node().set_domain("local");
  return model;
}

TEST(Functions, BodiesTakeTheCallsPlace) {
  ExpectOutput(FunctionModel(), {F32({2}, {-8, 2})}, F32({2}, {-1, 2}));
  ModelBuilder otherwise = FunctionModel();
  otherwise.last_node().clear_attribute();  // Then the body's own default holds.
  ExpectOutput(otherwise, {F32({2}, {-8, 2})}, F32({2}, {-8 * 0.5f * 0.01f, 2}));
}

TEST(Functions, Declines) {
  ModelBuilder unknown = FunctionModel();
  unknown.proto().mutable_functions(0)->mutable_node(0)->set_op_type("Nonsense");
  ExpectError(unknown, absl::StatusCode::kUnimplemented, "'Nonsense': 1 node");
  ModelBuilder endless = FunctionModel();
  endless.proto().mutable_functions(0)->mutable_node(0)->set_op_type("Scale");
  endless.proto().mutable_functions(0)->mutable_node(0)->set_domain("local");
  ExpectError(endless, absl::StatusCode::kInvalidArgument, "found calls nested more than 32 deep");
  ModelBuilder twice = FunctionModel();
  *twice.proto().add_functions() = twice.proto().functions(0);
  ExpectError(twice, absl::StatusCode::kInvalidArgument, "found two functions 'Scale'");
  ModelBuilder inputs = FunctionModel();
  inputs.last_node().add_input("x");
  ExpectError(inputs, absl::StatusCode::kInvalidArgument, "node 'second' (Scale): found 2 inputs, wanted 0 to 1");
}

}  // namespace
}  // namespace fuselage::onnx
