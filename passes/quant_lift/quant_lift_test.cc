#include "passes/quant_lift/quant_lift.h"

#include <gtest/gtest.h>

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
#include "ir/text.h"
#include "passes/quant_lift/synthetic.h"

namespace fuselage::quant_lift {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const ir::OpRegistry& Ops() {
  static const ir::OpRegistry* const ops = [] {
    auto* registry = new ir::OpRegistry();
    ops::RegisterAll(*registry);
    return registry;
  }();
  return *ops;
}

class SyntheticTest : public ::testing::TestWithParam<Synthetic> {};

TEST_P(SyntheticTest, LiftsAll) {
  constexpr int64_t kUnits = 100;
  const std::unique_ptr<ir::Graph> graph = GetParam().build(Ops(), kUnits);
  passes::Remarks remarks;
  ASSERT_OK(QuantLift().Run(*graph, remarks));
  EXPECT_OK(graph->Verify());
  EXPECT_EQ(graph->num_nodes(), GetParam().nodes_after(kUnits));
}

TEST_P(SyntheticTest, CostIsLinear) {
  const auto build = [](int64_t size) { return GetParam().build(Ops(), size); };
  const auto run = [](ir::Graph& graph) {
    passes::Remarks remarks;
    EXPECT_OK(QuantLift().Run(graph, remarks));
  };
  const int64_t units = 10'000 / GetParam().nodes_of_unit;
  EXPECT_LT(fuselage::testing::GrowthOverCopying(units, build, run), fuselage::testing::kMostIfLinear);
}

INSTANTIATE_TEST_SUITE_P(All, SyntheticTest, ::testing::ValuesIn(kSynthetics),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(QuantLiftTest, SourcesOfWhatWasCombinedAreKept) {
  const std::unique_ptr<ir::Graph> graph = kSynthetics[1].build(Ops(), 3);
  passes::Remarks remarks;
  ASSERT_OK_AND_ASSIGN(const bool changed, QuantLift().Run(*graph, remarks));
  EXPECT_TRUE(changed);
  EXPECT_THAT(graph->first()->next()->sources(), UnorderedElementsAre("n", "n_2", "n_3", "n_5", "n_6", "n_8"));
}

// Spellings of one call that the IR does not keep apart, so that the text cases cannot show them: attributes equal to
// the default, and trailing operands that are absent.
TEST(QuantLiftTest, OneSpellingAtTheDoor) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> graph, ir::Parse(R"(graph @g {
  %x: f32[2,40] = placeholder
  %a: u8[2,40]<scale=0.5> = call_function quantize(%x, scales=[0.5])
  %b: u8[2,40]<scale=0.5> = call_function quantize(%x, none, none, axis=-1, dtype=u8, scales=[0.5], zero_points=[])
  %c: (i8[2,40], f32[]) = call_function dynamic_quantize_symmetric(%x)
  %d: (i8[2,40], f32[]) = call_function dynamic_quantize_symmetric(%x, dims=[])
  %e: (u8[2,40], u8[2,2]) = call_function dynamic_quantize_mxfp4(%x)
  %f: (u8[2,40], u8[2,2]) = call_function dynamic_quantize_mxfp4(%x, group_size=32)
  output(%a, %b, %c, %d, %e, %f)
}
)",
                                                                         Ops()));
  passes::Remarks remarks;
  ASSERT_OK(QuantLift().Run(*graph, remarks));
  EXPECT_EQ(graph->num_nodes(), 5);
  EXPECT_EQ(remarks.CountApplied(), 3);
}

// Keyword operands, and a value of another kind, never get in: 1, 1.0 and true cannot collide.
TEST(QuantLiftTest, OtherSpellingsAreErrorsAtTheDoor) {
  const struct {
    const char *call, *error;
  } kCases[] = {
      {"quantize(%x, scale=%s)", "wanted a number, at '%s)'"},
      {"quantize(%x, %s, axis=1.0)", "attribute axis=1.0 is of kind float, wanted int"},
      {"quantize(%x, %s, axis=true)", "attribute axis=true is of kind bool, wanted int"},
      {"quantize(%x, scales=[1])", "attribute scales=[1] is of kind ints, wanted floats"},
      {"dynamic_quantize_symmetric(%x, dims=[1.0])", "attribute dims=[1.0] is of kind floats, wanted ints"},
      {"dynamic_quantize_mxfp4(%x, group_size=true)", "attribute group_size=true is of kind bool, wanted int"},
  };
  for (const auto& test : kCases) {
    const std::string text = std::string(R"(graph @g {
  %x: f32[2,4] = placeholder
  %s: f32[] = placeholder
  %a: u8[2,4] = call_function )") +
                             test.call + "\n  output(%a)\n}\n";
    EXPECT_THAT(std::string(ir::Parse(text, Ops()).status().message()), HasSubstr(test.error)) << test.call;
  }
}

}  // namespace
}  // namespace fuselage::quant_lift
