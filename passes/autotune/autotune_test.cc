#include "passes/autotune/autotune.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::autotune {
namespace {

using ir::Node;
using ::testing::HasSubstr;

// What each variant of each call takes; the rest of the network takes nothing, unless `disturbed` by a variant.
class FakeProfiler : public passes::Profiler {
 public:
  absl::StatusOr<std::vector<std::vector<Call>>> Profile(absl::Span<const ir::Graph* const> graphs) override {
    ++profiles;
    std::vector<std::vector<Call>> runs;
    for (const ir::Graph* graph : graphs) {
      std::vector<Call>& calls = runs.emplace_back();
      for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
        if (!node->IsOp("int8.conv2d")) continue;
        std::string variant = node->attribute("variant").as_string();
        if (variant.empty()) variant = "direct";
        calls.push_back({"reorder", {}, 0, variant == disturbed ? 1 : 0.0});
        calls.push_back({node->op()->name, node->SourcesOrSelf(), 0, seconds.at({node->name(), variant})});
      }
    }
    return runs;
  }

  std::map<std::pair<std::string, std::string>, double> seconds;
  std::string disturbed;
  int profiles = 0;
};

class AutotuneTest : public ::testing::Test {
 protected:
  AutotuneTest() {
    ops::RegisterAll(ops_);
    kernels::KernelEntry entry;
    entry.op = "int8.conv2d";
    entry.create = [](const kernels::KernelDesc&) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
      return absl::UnimplementedError("nothing is made");
    };
    entry.variants = [](const kernels::KernelDesc& desc) -> std::vector<std::string> {
      if (desc.output().shape[1] == 1) return {"direct"};
      const std::string& own = desc.GetString("variant");
      if (own == "winograd") return {"winograd", "direct", "old"};
      return {"direct", "winograd", "old"};
    };
    kernels_.Register(std::move(entry));
    profiler_.seconds = {{{"a", "direct"}, 5},   {{"a", "winograd"}, 4}, {{"a", "old"}, 9},   {{"b", "direct"}, 5},
                         {{"b", "winograd"}, 6}, {{"b", "old"}, 4.95},   {{"c", "direct"}, 1}};
  }

  void Run(bool wanted, AutotuneOptions options = {}) {
    remarks_ = passes::Remarks();
    if (graph_ == nullptr) {
      ASSERT_OK_AND_ASSIGN(graph_, ir::Parse(kText, ops_));
    }
    ASSERT_OK_AND_ASSIGN(const bool changed,
                         Autotune(std::move(options), &kernels_, &profiler_).Run(*graph_, remarks_));
    EXPECT_EQ(changed, wanted) << remarks_.ToString();
  }
  std::string VariantOf(const char* node) const {
    return graph_->FindNodeOrNull(node)->attribute("variant").as_string();
  }

  static constexpr char kText[] = R"(graph @g {
  param @w: i8[2,2,3,3]<axis=0, scale=[0.5, 0.5]> = seed(1)
  param @w_1: i8[1,2,1,1]<scale=0.5> = seed(1)
  module @a = int8.conv2d(out_scale=0.5, out_zero_point=3, padding=[1, 1, 1, 1], weight=@w)
  module @b = int8.conv2d(out_scale=0.5, out_zero_point=3, padding=[1, 1, 1, 1], weight=@w)
  module @c = int8.conv2d(out_scale=0.5, out_zero_point=3, weight=@w_1)
  %x: u8[1,2,5,5]<scale=0.5, zp=3> = placeholder
  %a: u8[1,2,5,5]<scale=0.5, zp=3> = call_module @a(%x)
  %b: u8[1,2,5,5]<scale=0.5, zp=3> = call_module @b(%a)
  %c: u8[1,1,5,5]<scale=0.5, zp=3> = call_module @c(%b)
  output(%c)
}
)";

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  FakeProfiler profiler_;
  passes::Remarks remarks_;
  std::unique_ptr<ir::Graph> graph_;
};

TEST_F(AutotuneTest, TakesTheFastestOfEachCall) {
  Run(true);
  EXPECT_EQ(VariantOf("a"), "winograd");
  EXPECT_EQ(VariantOf("b"), "") << "1 % is less than 2";
  EXPECT_EQ(VariantOf("c"), "");
  EXPECT_EQ(profiler_.profiles, 2);
  EXPECT_THAT(remarks_.ToString(), HasSubstr("applied %a: winograd: 4000.0000 ms, where direct took 5000.0000"));
  EXPECT_THAT(remarks_.ToString(), HasSubstr("took 11000.000 ms, 10000.000 with the fastest variant"));
  Run(false);
  EXPECT_EQ(VariantOf("a"), "winograd");
}

TEST_F(AutotuneTest, SmallGainsWhereTheyAreWanted) {
  AutotuneOptions options;
  options.set_least_gain_percent(0.5);
  Run(true, options);
  EXPECT_EQ(VariantOf("b"), "old");
}

TEST_F(AutotuneTest, StaysWhereTheNetworkGainsNothing) {
  profiler_.disturbed = "winograd";
  Run(false);
  EXPECT_EQ(VariantOf("a"), "");
  EXPECT_THAT(remarks_.ToString(), HasSubstr("it stays as it is"));
}

TEST_F(AutotuneTest, NothingWithoutATimeOrAChoice) {
  profiler_.seconds[{"a", "winograd"}] = 5;
  Run(false);
  EXPECT_THAT(remarks_.ToString(), HasSubstr("no variant is faster"));
  ASSERT_OK_AND_ASSIGN(const bool changed, Autotune({}, &kernels_, nullptr).Run(*graph_, remarks_));
  EXPECT_FALSE(changed);
  EXPECT_FALSE(Autotune({}, nullptr, &profiler_).Run(*graph_, remarks_).ok());
}

TEST_F(AutotuneTest, NotWhereAnotherCallWouldChangeToo) {
  std::string text = kText;
  text.replace(text.find("@b(%a)"), 6, "@a(%a)");
  text.erase(text.find("  module @b"), text.find("  module @c") - text.find("  module @b"));
  ASSERT_OK_AND_ASSIGN(graph_, ir::Parse(text, ops_));
  Run(false);
  EXPECT_THAT(remarks_.ToString(), HasSubstr("missed %a: keeps its variant: module @a is also called by %b"));
  EXPECT_EQ(profiler_.profiles, 0);
}

}  // namespace
}  // namespace fuselage::autotune
