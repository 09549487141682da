#include "passes/quant_lift/quant_lift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
#include "ir/text.h"
#include "passes/quant_lift/testing/synthetic.h"
#include "passes/quant_lift/view_axes.h"

namespace fuselage::quant_lift {
namespace {

using ir::Node;
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
  const int64_t units = 5'000 / GetParam().nodes_of_unit;
  EXPECT_LT(fuselage::testing::GrowthOverCopying(units, build, run), fuselage::testing::kMostIfLinear);
}

INSTANTIATE_TEST_SUITE_P(All, SyntheticTest, ::testing::ValuesIn(kSynthetics),
                         [](const auto& info) { return std::string(info.param.name); });

// --- Random chains of views with quantizes at their ends: every bit stays.

class RandomChain {
 public:
  explicit RandomChain(uint32_t seed) : random_(seed), graph_(std::make_unique<ir::Graph>("random", Ops())) {
    Node* value =
        graph_->AddPlaceholder("x", TensorType{DType::kF32, Factors(), std::nullopt, Layout::kRowMajor}).value();
    for (int i = Below(4); i >= 0; --i) value = AddView(value);
    std::vector<Node*> results;
    const int readers = 1 + Below(2);
    for (int i = 0; i < readers; ++i) AddQuantize(value, results);
    graph_->AddOutput(results).value();
  }
  ir::Graph& graph() { return *graph_; }

 private:
  int Below(int end) { return static_cast<int>(random_() % end); }
  Node* Add(const char* op, Node* operand, AttributeMap attributes = {}) {
    return graph_->AddFunction("n", op, {operand}, std::move(attributes)).value();
  }

  // 24 as the product of up to five factors in any order, 1 among them.
  Shape Factors() {
    Shape shape(1 + Below(5), 1);
    for (int64_t prime : {2, 2, 2, 3}) shape[Below(static_cast<int>(shape.size()))] *= prime;
    return shape;
  }

  Node* AddView(Node* value) {
    const int rank = value->tensor_type().rank();
    Axes axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    switch (Below(6)) {
      case 0: std::shuffle(axes.begin(), axes.end(), random_); return Add("permute", value, {{"dims", axes}});
      case 1: return Add("transpose", value, {{"dim0", Below(rank)}, {"dim1", Below(rank) - rank}});
      case 2: return Add("unsqueeze", value, {{"dims", Axes{Below(rank + 1)}}});
      case 3: return Add("flatten", value, {{"start_dim", 0}, {"end_dim", Below(rank)}});
      case 4: return Add("contiguous", value);
      default: return Add("reshape", value, {{"shape", Factors()}});
    }
  }

  void AddQuantize(Node* value, std::vector<Node*>& results) {
    const Shape& shape = value->tensor_type().shape;
    const int rank = static_cast<int>(shape.size());
    Axes dims;
    for (int axis = 0; axis < rank; ++axis) {
      if (Below(2) == 0) dims.push_back(axis);
    }
    Node* quantize = nullptr;
    switch (Below(4)) {
      case 0: quantize = Add("dynamic_quantize_symmetric", value, {{"dims", dims}}); break;
      case 1: quantize = Add("dynamic_quantize_asymmetric", value, {{"dims", dims}}); break;
      case 2: quantize = Add("dynamic_quantize_mxfp4", value, {{"group_size", 1 + Below(9)}}); break;
      default: {
        const int axis = Below(rank);
        std::vector<double> scales;
        for (int64_t i = 0; i < shape[axis]; ++i) scales.push_back(0.01 * static_cast<double>(i + 1));
        results.push_back(Add("quantize", value, {{"axis", axis}, {"dtype", DType::kI8}, {"scales", scales}}));
        return;
      }
    }
    const int size = static_cast<int>(quantize->type().elements().size());
    for (int i = 0; i < size; ++i) results.push_back(Add("getitem", quantize, {{"index", Below(2) ? i : i - size}}));
  }

  std::mt19937 random_;
  std::unique_ptr<ir::Graph> graph_;
};

TEST(QuantLiftTest, RandomChainsKeepTheirBits) {
  int lifted = 0, missed = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    RandomChain chain(seed);
    SCOPED_TRACE(ir::Print(chain.graph()));
    const std::vector<Tensor> input = {SeededTensor(chain.graph().first()->tensor_type(), seed)};
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> before, interpreter::Run(chain.graph(), input));
    passes::Remarks remarks;
    ASSERT_OK(QuantLift().Run(chain.graph(), remarks));
    ASSERT_OK(chain.graph().Verify());
    (remarks.CountApplied() > 0 ? lifted : missed) += 1;
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, interpreter::Run(chain.graph(), input));
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < before.size(); ++i) ASSERT_TRUE(after[i].SameBytes(before[i])) << i;
    ASSERT_OK_AND_ASSIGN(const bool again, QuantLift().Run(chain.graph(), remarks));
    ASSERT_FALSE(again);
  }
  EXPECT_GT(lifted, 300);
  EXPECT_GT(missed, 300);
}

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
