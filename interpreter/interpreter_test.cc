#include "interpreter/interpreter.h"

#include <sys/resource.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::interpreter {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InterpreterTest : public ::testing::Test {
 protected:
  InterpreterTest() { ops::RegisterAll(ops_); }

  std::unique_ptr<ir::Graph> Parse(absl::string_view text) {
    auto graph = ir::Parse(text, ops_);
    EXPECT_OK(graph);
    return *std::move(graph);
  }

  ir::OpRegistry ops_;
};

Tensor Vector(std::vector<float> values) { return Tensor::Of<float>({static_cast<int64_t>(values.size())}, values); }

TEST_F(InterpreterTest, FunctionsMethodsModulesAndParameters) {
  const auto graph = Parse(R"(graph @g {
  param @fc.w: f32[1,2] = [1.0, 10.0]
  param @fc.b: f32[1] = [100.0]
  param @one: f32[1] = [1.0]
  module @fc = linear(weight=@fc.w, bias=@fc.b)
  %x: f32[2] = placeholder
  %y: f32[2] = placeholder
  %d: f32[2] = call_function sub(%x, %y)
  %r: f32[2] = call_method relu(%d)
  %f: f32[1] = call_module @fc(%r)
  %g: f32[1] = call_module @fc(%x)
  %one: f32[1] = get_attr @one
  %s: f32[1] = call_function add(%f, %one)
  output(%s, %g, %s)
}
)");
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out, interpreter::Run(*graph, {Vector({5, 7}), Vector({3, 9})}));
  ASSERT_EQ(out.size(), 3);
  EXPECT_THAT(out[0].values<float>(), ElementsAre(103));
  EXPECT_THAT(out[1].values<float>(), ElementsAre(175));
  EXPECT_THAT(out[2].values<float>(), ElementsAre(103));
}

TEST_F(InterpreterTest, AbsentOperandsAndParametersKeepTheirPlaces) {
  const auto graph = Parse(R"(graph @g {
  param @w: f32[1,1,1] = [2.0]
  param @m: f32[1] = [1.0]
  param @v: f32[1] = [4.0]
  module @bn = batch_norm(eps=0.0, running_mean=@m, running_var=@v)
  module @conv = conv1d(weight=@w)
  %x: f32[1,1,2] = placeholder
  %n: f32[1,1,2] = call_module @bn(%x)
  %w: f32[1,1,1] = get_attr @w
  %f: f32[1,1,2] = call_function conv1d(%x, %w, none, %n)
  %c: f32[1,1,2] = call_module @conv(%x, %f)
  output(%c)
}
)");
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out, interpreter::Run(*graph, {Tensor::Of<float>({1, 1, 2}, {3, 5})}));
  EXPECT_THAT(out[0].values<float>(), ElementsAre(6 + 6 + 1, 10 + 10 + 2));
}

TEST_F(InterpreterTest, TuplesAndVariadicOperands) {
  const auto graph = Parse(R"(graph @g {
  %x: f32[3] = placeholder
  %t: (f32[1], f32[2]) = call_function split(%x, sizes=[1, 2])
  %a: f32[1] = call_function getitem(%t, index=0)
  %b: f32[2] = call_function getitem(%t, index=-1)
  %y: f32[5] = call_function cat(%b, %a, %b)
  output(%y)
}
)");
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out, interpreter::Run(*graph, {Vector({1, 2, 3})}));
  EXPECT_THAT(out[0].values<float>(), ElementsAre(2, 3, 1, 2, 3));
}

TEST_F(InterpreterTest, WrongInputs) {
  const auto graph = Parse(R"(graph @g {
  %x: f32[2] = placeholder
  output(%x)
}
)");
  EXPECT_THAT(interpreter::Run(*graph, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("%x: no input, only 0 given")));
  EXPECT_THAT(interpreter::Run(*graph, {Vector({1, 2}), Vector({1})}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 inputs given, the graph has 1")));
  EXPECT_THAT(
      interpreter::Run(*graph, {Vector({1})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("%x: found an input of type f32[1], wanted f32[2]")));
  EXPECT_THAT(interpreter::Run(*graph, {Tensor(DType::kF64, {2})}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f64[2]")));
}

TEST_F(InterpreterTest, ErrorsNameTheNode) {
  const auto division = Parse(R"(graph @g {
  %x: i32[1] = placeholder
  %q: i32[1] = call_function div(%x, %x)
  output(%q)
}
)");
  EXPECT_THAT(interpreter::Run(*division, {Tensor(DType::kI32, {1})}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("%q: div: division of the integer 0 by zero")));
  const auto large = Parse(R"(graph @g {
  %x: f32[65536,1] = placeholder
  %y: f32[1,65536] = placeholder
  %z: f32[65536,65536] = call_function mul(%x, %y)
  output(%z)
}
)");
  EXPECT_THAT(
      interpreter::Run(*large, {Tensor(DType::kF32, {65536, 1}), Tensor(DType::kF32, {1, 65536})}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("%z: f32[65536,65536] takes 17179869184 bytes")));
}

TEST_F(InterpreterTest, ObserverSeesEachValueAndCanStop) {
  const auto graph = Parse(R"(graph @g {
  %x: f32[2] = placeholder
  %unused: f32[2] = call_function tanh(%x)
  %y: f32[2] = call_function relu(%x)
  output(%y)
}
)");
  std::vector<std::string> seen;
  const Observer observer = [&](const ir::Node& node, absl::Span<const Tensor> value) -> absl::Status {
    EXPECT_EQ(value.size(), 1);
    EXPECT_EQ(value[0].type(), node.tensor_type());
    seen.push_back(node.name());
    return absl::OkStatus();
  };
  EXPECT_OK(interpreter::Run(*graph, {Vector({-1, 1})}, observer));
  EXPECT_THAT(seen, ElementsAre("x", "unused", "y"));
  const Observer stop = [](const ir::Node& node, absl::Span<const Tensor>) {
    return node.name() == "y" ? absl::CancelledError("enough") : absl::OkStatus();
  };
  EXPECT_THAT(interpreter::Run(*graph, {Vector({-1, 1})}, stop),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
}

TEST_F(InterpreterTest, CodesKeepTheirParameters) {
  const auto graph = Parse(R"(graph @g {
  %q: u8[2]<scale=0.5, zp=3> = placeholder
  %x: f32[2] = call_function dequantize(%q)
  output(%x, %q)
}
)");
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out, interpreter::Run(*graph, {Tensor::Of<uint8_t>({2}, {3, 5})}));
  EXPECT_THAT(out[0].values<float>(), ElementsAre(0, 1));
  EXPECT_EQ(out[1].type(), graph->placeholders()[0]->tensor_type());
}

TEST_F(InterpreterTest, FreesValuesAfterTheirLastUse) {
  constexpr int kNodes = 64;
  const int64_t elements = int64_t{4} << 20;  // 16 MiB each, 1 GiB together.
  ir::Graph graph("chain", ops_);
  auto value = graph.AddPlaceholder("x", {DType::kF32, {elements}, std::nullopt, Layout::kRowMajor});
  for (int i = 0; i < kNodes; ++i) {
    ASSERT_OK(value);
    value = graph.AddFunction("y", "identity", {*value});
  }
  ASSERT_OK(value);
  ASSERT_OK(graph.AddOutput({*value}));
  const auto peak_bytes = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return int64_t{usage.ru_maxrss} * 1024;
  };
  const Tensor input(DType::kF32, {elements});
  const int64_t before = peak_bytes();
  ASSERT_OK(interpreter::Run(graph, absl::MakeConstSpan(&input, 1)));
  EXPECT_LT(peak_bytes() - before, kNodes / 2 * input.byte_size());
}

}  // namespace
}  // namespace fuselage::interpreter
