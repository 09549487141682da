#include "passes/quantize/rows.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/quantize/seeded_runner.h"

namespace fuselage::quantize {
namespace {

// Rows times the weights are what %y computes of %x.
void ExpectRowsGiveOutputs(const std::string& text) {
  SCOPED_TRACE(text);
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  const absl::StatusOr<std::unique_ptr<ir::Graph>> graph = ir::Parse(text, ops);
  ASSERT_OK(graph);
  const std::vector<Tensor> inputs = SeededInputs(**graph, 0);
  const Tensor output = (*interpreter::Run(**graph, inputs))[0];
  const ir::Node& call = *(*graph)->FindNodeOrNull("y");
  const Tensor& weight = *(*graph)->ParameterOfOrNull(call, "weight");
  const int64_t channels = weight.dim(0), size = weight.num_elements() / channels, outputs = channels / GroupsOf(call);
  const int64_t pixels = call.IsOp("linear") ? 1 : output.dim(2) * output.dim(3);
  std::vector<int64_t> seen(GroupsOf(call));  // Rows, by group.
  ForEachRows(call, inputs[0], [&](int64_t group, absl::Span<const float> rows) {
    for (size_t first = 0; first < rows.size(); first += size, ++seen[group]) {
      const int64_t image = seen[group] / pixels, pixel = seen[group] % pixels;
      for (int64_t n = group * outputs; n < (group + 1) * outputs; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < size; ++k) sum += static_cast<double>(rows[first + k]) * weight.At(n * size + k);
        EXPECT_NEAR(output.At((image * channels + n) * pixels + pixel), sum, 1e-5) << image << " " << n << " " << pixel;
      }
    }
  });
  for (const int64_t rows : seen) EXPECT_EQ(rows * channels, output.num_elements());
}

TEST(RowsTest, OfALinear) {
  ExpectRowsGiveOutputs(R"(graph @g {
  param @y.weight: f32[3,5] = seed(1)
  module @y = linear(weight=@y.weight)
  %x: f32[2,4,5] = placeholder
  %y: f32[2,4,3] = call_module @y(%x)
  output(%y)
})");
}

TEST(RowsTest, OfAConvolution) {
  struct Case {
    const char *weight, *attributes, *result;
  };
  for (const Case& one : {Case{"4,6,3,2", "padding=[1, 0, 2, 1], stride=[2, 1]", "2,4,4,9"},
                          Case{"4,3,2,3", "dilation=[3, 2], groups=2, padding=[2, 1, 1, 3]", "2,4,7,9"},
                          Case{"6,1,3,3", "groups=6, padding=[1, 1, 1, 1], stride=[2, 2]", "2,6,4,5"},
                          Case{"5,6,1,1", "stride=[3, 2]", "2,5,3,5"}}) {
    ExpectRowsGiveOutputs(absl::StrCat("graph @g {\n  param @y.weight: f32[", one.weight,
                                       "] = seed(1)\n  module @y = conv2d(", one.attributes,
                                       ", weight=@y.weight)\n  %x: f32[2,6,7,9] = placeholder\n  %y: f32[", one.result,
                                       "] = call_module @y(%x)\n  output(%y)\n}"));
  }
}

}  // namespace
}  // namespace fuselage::quantize
