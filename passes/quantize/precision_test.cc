#include "passes/quantize/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/quantize/seeded_runner.h"

namespace fuselage::quantize {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kChain[] = R"(graph @g {
  param @w: f32[2,2] = [1, 0.5, 0.25, -1]
  module @a = linear(weight=@w)
  module @b = linear(weight=@w)
  module @c = linear(weight=@w)
  %x: f32[1,2] = placeholder
  %a: f32[1,2] = call_module @a(%x)
  %b: f32[1,2] = call_module @b(%a)
  %c: f32[1,2] = call_module @c(%b)
  output(%c)
}
)";

// The weight's largest code is that of seven bits.
bool HasSevenBits(const ir::Node& call) {
  const ir::Parameter& weight = *call.graph().FindParameterOrNull(call.module()->parameters.at("weight"));
  if (weight.tensor->dtype() != DType::kI8) return false;
  int largest = 0;
  for (const int8_t code : weight.tensor->values<int8_t>()) largest = std::max(largest, std::abs(code));
  return largest == 63;
}

// Plays `lower`: what reads a dequantize runs in INT8; `seven` has what takes another time with weights of seven bits.
class FakeProfiler : public passes::Profiler {
 public:
  FakeProfiler(std::map<std::string, double> f32, std::map<std::string, double> int8, double conversion,
               std::map<std::string, double> seven = {})
      : f32_(std::move(f32)), int8_(std::move(int8)), seven_(std::move(seven)), conversion_(conversion) {}

  absl::StatusOr<std::vector<std::vector<Call>>> Profile(absl::Span<const ir::Graph* const> graphs) override {
    std::vector<std::vector<Call>> runs;
    for (const ir::Graph* graph : graphs) runs.push_back(CallsOf(*graph));
    return runs;
  }

  double more_in_mixed = 0;  // What an op in FP32 takes more where others run in INT8.

 private:
  std::vector<Call> CallsOf(const ir::Graph& graph) const {
    std::vector<Call> calls;
    const bool mixed = ir::Print(graph).find("dequantize") != std::string::npos;
    for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
      if (!node->is_call()) continue;
      const std::vector<std::string> sources = node->SourcesOrSelf();
      const bool within = node->IsOp("dequantize") && node->users()[0]->is_call();
      const bool joined = node->IsOp("quantize") && int8_.count(node->operand(0)->name()) > 0 &&
                          node->operand(0)->operand(0)->IsOp("dequantize");
      if (within || joined) continue;
      if (node->IsOp("quantize") || node->IsOp("dequantize")) {
        calls.push_back({"int8." + node->op()->name, sources, /*bytes=*/10, conversion_});
      } else if (node->operand(0)->IsOp("dequantize")) {
        const bool seven = seven_.count(node->name()) > 0 && HasSevenBits(*node);
        calls.push_back({"int8." + node->op()->name, sources, 10, (seven ? seven_ : int8_).at(node->name())});
      } else {
        calls.push_back({node->op()->name, sources, 10, f32_.at(node->name()) + (mixed ? more_in_mixed : 0)});
      }
    }
    return calls;
  }

  const std::map<std::string, double> f32_, int8_, seven_;
  const double conversion_;
};

class PrecisionTest : public ::testing::Test {
 protected:
  PrecisionTest() { ops::RegisterAll(ops_); }

  // The chain by `quantize`.
  std::unique_ptr<ir::Graph> Chain(passes::Profiler& profiler, QuantizeOptions options = {}) {
    std::unique_ptr<ir::Graph> graph = *ir::Parse(kChain, ops_);
    options.set_precision(QuantizeOptions::FASTEST);
    EXPECT_OK(Quantize(options, &runner_, "", &profiler).Run(*graph, remarks_));
    EXPECT_OK(graph->Verify());
    return graph;
  }

  // The nodes that it keeps in FP32, in order.
  std::string KeptOf(passes::Profiler& profiler, const QuantizeOptions& options = {}) {
    const std::unique_ptr<ir::Graph> graph = Chain(profiler, options);
    std::string kept;
    for (const char* name : {"a", "b", "c"}) {
      if (!graph->FindNodeOrNull(name)->operand(0)->IsOp("dequantize")) kept += name;
    }
    return kept;
  }

  // Those whose weights it gives seven bits.
  std::string WithSevenBits(passes::Profiler& profiler,
                            QuantizeOptions::Weights weights = QuantizeOptions::PER_CHANNEL_7_OR_8_BITS) {
    QuantizeOptions options;
    options.set_weights(weights);
    const std::unique_ptr<ir::Graph> graph = Chain(profiler, options);
    std::string seven;
    for (const char* name : {"a", "b", "c"}) {
      if (HasSevenBits(*graph->FindNodeOrNull(name))) seven += name;
    }
    return seven;
  }

  bool HasRemark(absl::string_view text) const {
    return std::any_of(remarks_.list().begin(), remarks_.list().end(),
                       [&](const passes::Remark& remark) { return absl::StrContains(remark.message, text); });
  }

  ir::OpRegistry ops_;
  SeededRunner runner_;
  passes::Remarks remarks_;
};

TEST_F(PrecisionTest, KeepsInFloatWhatIsFasterThere) {
  FakeProfiler everywhere({{"a", 4}, {"b", 4}, {"c", 4}}, {{"a", 1}, {"b", 1}, {"c", 1}}, 0.1);
  EXPECT_EQ(KeptOf(everywhere), "");
  EXPECT_TRUE(HasRemark("fastest is INT8; one run on one thread: INT8 3.1e+03 ms, FP32 1.2e+04 ms"));

  FakeProfiler nowhere({{"a", 1}, {"b", 1}, {"c", 1}}, {{"a", 4}, {"b", 4}, {"c", 4}}, 0.1);
  EXPECT_EQ(KeptOf(nowhere), "abc");

  FakeProfiler two({{"a", 4}, {"b", 1}, {"c", 4}}, {{"a", 1}, {"b", 4}, {"c", 1}}, 0.1);
  EXPECT_EQ(KeptOf(two), "b");
  EXPECT_TRUE(HasRemark("kept in FP32: faster on the whole (1e+03 ms in FP32, 4e+03 ms in INT8, beside conversions)"));
}

TEST_F(PrecisionTest, CountsTheConversionsThatAChoiceNeeds) {
  FakeProfiler dear({{"a", 4}, {"b", 1}, {"c", 4}}, {{"a", 1}, {"b", 2}, {"c", 1}}, 2);
  EXPECT_EQ(KeptOf(dear), "") << "one saved, two spent on the way into %b";
  FakeProfiler first({{"a", 1}, {"b", 4}, {"c", 4}}, {{"a", 3}, {"b", 1}, {"c", 1}}, 2);
  EXPECT_EQ(KeptOf(first), "a") << "one conversion either way";
}

TEST_F(PrecisionTest, GivesSevenBitsToWhatIsFasterWithThem) {
  const std::map<std::string, double> f32 = {{"a", 9}, {"b", 9}, {"c", 9}}, int8 = {{"a", 4}, {"b", 4}, {"c", 4}};
  FakeProfiler two(f32, int8, 0.1, {{"a", 2}, {"b", 3.9}, {"c", 3}});
  EXPECT_EQ(WithSevenBits(two), "ac") << "b gains less than calls differ from one to the next";
  EXPECT_TRUE(
      HasRemark("fastest is INT8 (weights of 2 of 3 in seven bits); one run on one thread: INT8 1.21e+04 ms, "
                "FP32 2.7e+04 ms, INT8 (weights of 2 of 3 in seven bits) 9.1e+03 ms"));
  EXPECT_TRUE(HasRemark("weight i8 of seven bits per channel, faster: 2e+03 ms, with eight 4e+03 ms"));
  EXPECT_EQ(WithSevenBits(two, QuantizeOptions::PER_CHANNEL), "");
  EXPECT_EQ(WithSevenBits(two, QuantizeOptions::PER_CHANNEL_7_BITS), "abc");
  FakeProfiler little({{"a", 9}, {"b", 900}, {"c", 9}}, {{"a", 4}, {"b", 400}, {"c", 4}}, 0.1,
                      {{"a", 2}, {"b", 400}, {"c", 4}});
  EXPECT_EQ(WithSevenBits(little), "") << "all three take as long, but for less than 2 %";
}

// What is slower in INT8 with eight bits than in FP32 may be faster with seven.
TEST_F(PrecisionTest, DividesByTheFasterOfSevenAndEightBits) {
  FakeProfiler profiler({{"a", 3}, {"b", 1}, {"c", 9}}, {{"a", 4}, {"b", 8}, {"c", 4}}, 0.1, {{"a", 2}, {"b", 7}});
  QuantizeOptions options;
  EXPECT_EQ(KeptOf(profiler, options), "ab");
  options.set_weights(QuantizeOptions::PER_CHANNEL_7_OR_8_BITS);
  EXPECT_EQ(KeptOf(profiler, options), "b");
  EXPECT_TRUE(HasRemark("fastest is both (1 of 3 in FP32, weights of 1 of 3 in seven bits)"));
  EXPECT_EQ(WithSevenBits(profiler), "a");
}

TEST_F(PrecisionTest, SevenBitsRemainWhereFloatsDoNotKeepTheirPromise) {
  FakeProfiler profiler({{"a", 3}, {"b", 1}, {"c", 9}}, {{"a", 4}, {"b", 2}, {"c", 4}}, 0.1, {{"a", 2}});
  QuantizeOptions options;
  options.set_weights(QuantizeOptions::PER_CHANNEL_7_OR_8_BITS);
  EXPECT_EQ(KeptOf(profiler, options), "b");
  profiler.more_in_mixed = 5;
  EXPECT_EQ(KeptOf(profiler, options), "");
  EXPECT_EQ(WithSevenBits(profiler), "a");
}

TEST_F(PrecisionTest, SevenOrEightBitsNeedTimes) {
  QuantizeOptions options;
  options.set_weights(QuantizeOptions::PER_CHANNEL_7_OR_8_BITS);
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(kChain, ops_);
  EXPECT_THAT(Quantize(options, &runner_).Run(*graph, remarks_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("which quantize with precision FASTEST decides")));
}

// No range is known between a convolution and what scales its channels.
TEST_F(PrecisionTest, WhatScalesChannelsStaysWithItsConvolution) {
  const char* text = R"(graph @g {
  param @s: f32[1,1,1] = [2]
  param @w: f32[1,1,1,1] = [1]
  module @a = conv2d(activation="silu", weight=@w)
  module @b = conv2d(weight=@w)
  %x: f32[1,1,1,2] = placeholder
  %s: f32[1,1,1] = get_attr @s
  %a: f32[1,1,1,2] = call_module @a(%x)
  %m: f32[1,1,1,2] = call_function mul(%a, %s)
  %b: f32[1,1,1,2] = call_module @b(%m)
  output(%b)
})";
  QuantizeOptions options;
  options.set_precision(QuantizeOptions::FASTEST);
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(text, ops_);
  FakeProfiler profiler({{"a", 1}, {"m", 1}, {"b", 10}}, {{"a", 10}, {"m", 1}, {"b", 1}}, 0.1);
  ASSERT_OK(Quantize(options, &runner_, "", &profiler).Run(*graph, remarks_));
  EXPECT_EQ(graph->FindNodeOrNull("a")->operand(0)->name(), "x");
  EXPECT_EQ(graph->FindNodeOrNull("m")->operand(0)->name(), "a");
  EXPECT_TRUE(graph->FindNodeOrNull("b")->operand(0)->IsOp("dequantize"));
}

// In INT8 the pool shares the parameters of %a; in FP32 its result needs some of its own.
TEST_F(PrecisionTest, WhatSharesARangeMayStayInFloat) {
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(R"(graph @g {
  param @w: f32[1,1,1,1] = [1]
  module @a = conv2d(weight=@w)
  module @p = max_pool2d(kernel_size=[1, 1], stride=[1, 1])
  module @b = conv2d(weight=@w)
  %x: f32[1,1,1,2] = placeholder
  %a: f32[1,1,1,2] = call_module @a(%x)
  %p: f32[1,1,1,2] = call_module @p(%a)
  %b: f32[1,1,1,2] = call_module @b(%p)
  output(%b)
}
)",
                                                      ops_);
  FakeProfiler profiler({{"a", 4}, {"p", 1}, {"b", 4}}, {{"a", 1}, {"p", 4}, {"b", 1}}, 0.1);
  QuantizeOptions options;
  options.set_precision(QuantizeOptions::FASTEST);
  EXPECT_OK(Quantize(options, &runner_, "", &profiler).Run(*graph, remarks_));
  EXPECT_OK(graph->Verify());
  EXPECT_FALSE(graph->FindNodeOrNull("p")->operand(0)->IsOp("dequantize"));
  const ir::Node* codes = graph->FindNodeOrNull("p_q");
  ASSERT_NE(codes, nullptr);
  EXPECT_EQ(codes->tensor_type().quant, graph->FindNodeOrNull("x_q")->tensor_type().quant) << "of the same samples";
}

// In FP32 it is what `skip` leaves.
TEST_F(PrecisionTest, ATransposedConvolutionIsOneOnlyInInt8) {
  const auto quantized = [&](const QuantizeOptions& options, passes::Profiler* profiler) {
    const std::unique_ptr<ir::Graph> graph = *ir::Parse(R"(graph @g {
  param @c.weight: f32[1,1,1,1] = [1]
  param @up.weight: f32[1,1,3,3] = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  module @c = conv2d(weight=@c.weight)
  module @up = conv_transpose2d(output_padding=[1, 1], padding=[1, 1, 1, 1], stride=[2, 2], weight=@up.weight)
  %x: f32[1,1,1,2] = placeholder
  %up: f32[1,1,2,4] = call_module @up(%x)
  %silu: f32[1,1,2,4] = call_function silu(%up)
  %c: f32[1,1,2,4] = call_module @c(%silu)
  output(%c)
}
)",
                                                        ops_);
    EXPECT_OK(Quantize(options, &runner_, "", profiler).Run(*graph, remarks_));
    EXPECT_OK(graph->Verify());
    return ir::Print(*graph);
  };
  const auto fastest = [&](double f32, double int8) {
    FakeProfiler profiler({{"up", f32}, {"silu", 1}, {"c", 4}, {"up_apart", 0}, {"up_moved", 1}, {"up_joined", 0}},
                          {{"up", int8}, {"c", 1}}, 0.1);
    QuantizeOptions options;
    options.set_precision(QuantizeOptions::FASTEST);
    return quantized(options, &profiler);
  };
  const std::string int8 = quantized({}, nullptr);
  EXPECT_THAT(int8, HasSubstr("module @up = conv2d(activation=\"silu\""));
  EXPECT_EQ(fastest(8, 1), int8);
  QuantizeOptions in_float;
  for (const char* name : {"up", "silu"}) in_float.add_skip(name);
  const std::string mixed = quantized(in_float, nullptr);
  EXPECT_THAT(mixed, HasSubstr("module @up = conv_transpose2d"));
  EXPECT_EQ(fastest(1, 8), mixed);
}

TEST_F(PrecisionTest, WhatIsFasterNeedsAProfiler) {
  QuantizeOptions options;
  options.set_precision(QuantizeOptions::FASTEST);
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(kChain, ops_);
  const absl::Status status = Quantize(options, &runner_).Run(*graph, remarks_).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs a profiler")));
  EXPECT_TRUE(IsUsageError(status));
}

}  // namespace
}  // namespace fuselage::quantize
