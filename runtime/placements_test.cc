#include "runtime/placements.h"

#include <map>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::runtime {
namespace {

using kernels::Blocking;
using kernels::KernelDesc;
using kernels::Placement;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr Placement kHalo = {Blocking::kNone, 1, 0}, kPlanes = {Blocking::kPhasePlanes, 1, 0};

// Convolutions wish for planes where they have stride 2, else for a halo, write a halo only, and read everything;
// quantize writes and pools read and write everything; additions know dense tensors only.
class PlacementsTest : public ::testing::Test {
 protected:
  PlacementsTest() {
    ops::RegisterAll(ops_);
    const auto any = [](const KernelDesc&) { return true; };
    const auto never = [](const KernelDesc&) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
      return absl::UnimplementedError("placements are chosen before kernels are made");
    };
    kernels::KernelEntry conv = {"int8.conv2d", kernels::LayoutRule::kNhwc, never};
    conv.takes_placements = [](const KernelDesc& desc) { return desc.output_placement.blocking == Blocking::kNone; };
    conv.preferred_placement = [](const KernelDesc& desc) {
      if (desc.GetInts("stride")[0] == 2) return kPlanes;
      return desc.GetInts("padding")[0] > 0 ? kHalo : Placement();
    };
    kernels_.Register(conv);
    kernels_.Register({"int8.max_pool2d", kernels::LayoutRule::kNhwc, never, any});
    kernels_.Register({"int8.quantize", kernels::LayoutRule::kAnyInput, never, any});
    kernels_.Register({"int8.add", kernels::LayoutRule::kSame, never});
  }

  // By name of the value.
  std::map<std::string, std::string> Choose(const std::string& body) {
    const auto graph = ir::Parse("graph @g {\n" + body + "}\n", ops_);
    EXPECT_OK(graph);
    std::map<std::string, std::string> chosen;
    if (!graph.ok()) return chosen;
    for (const auto& [node, placement] :
         ChoosePlacements(**graph, *ConstantsOf(**graph, 0), kernels_, kernels::Isa::kScalar, 1)) {
      chosen[node->name()] = kernels::PlacementText(placement);
    }
    return chosen;
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
};

constexpr char kModules[] = R"(
  param @c.weight: i8[1,1,3,3]<scale=0.01> = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  module @c = int8.conv2d(out_scale=0.5, padding=[1, 1, 1, 1], weight=@c.weight)
  module @s2 = int8.conv2d(out_scale=0.5, padding=[1, 1, 1, 1], stride=[2, 2], weight=@c.weight)
  module @add = int8.add(out_scale=0.5)
  module @q = int8.quantize(out_scale=0.5)
  %x: f32[1,1,8,8] = placeholder
  %q: u8[1,1,8,8]<scale=0.5> = call_module @q(%x)
)";

TEST_F(PlacementsTest, TheReadersWish) {
  EXPECT_THAT(Choose(std::string(kModules) + R"(
  %c: u8[1,1,8,8]<scale=0.5> = call_module @c(%q)
  output(%c)
)"),
              ElementsAre(Pair("q", "halo 1")));
}

TEST_F(PlacementsTest, OnlyResidualOperandsHaveNoWish) {
  EXPECT_THAT(Choose(std::string(kModules) + R"(
  %a: u8[1,1,8,8]<scale=0.5> = call_module @c(%q)
  %b: u8[1,1,8,8]<scale=0.5> = call_module @c(%a, %q)
  %d: u8[1,1,8,8]<scale=0.5> = call_module @c(%q, %b)
  output(%d)
)"),
              ElementsAre(Pair("a", "halo 1"), Pair("q", "halo 1")));
}

TEST_F(PlacementsTest, PlanesWhereAllWishForThem) {
  EXPECT_THAT(Choose(std::string(kModules) + R"(
  %a: u8[1,1,4,4]<scale=0.5> = call_module @s2(%q)
  %b: u8[1,1,4,4]<scale=0.5> = call_module @s2(%q)
  %d: u8[1,1,4,4]<scale=0.5> = call_module @c(%a, %b)
  output(%d)
)"),
              ElementsAre(Pair("a", "halo 1"), Pair("q", "phase planes, halo 1")));
}

// Nobody writes planes but quantize; where wishes differ or cannot be written, what is left without blocks is taken.
TEST_F(PlacementsTest, WithoutBlocksWhereWishesDiffer) {
  EXPECT_THAT(Choose(std::string(kModules) + R"(
  %a: u8[1,1,8,8]<scale=0.5> = call_module @c(%q)
  %b: u8[1,1,4,4]<scale=0.5> = call_module @s2(%q)
  %d: u8[1,1,4,4]<scale=0.5> = call_module @s2(%a)
  output(%b, %d)
)"),
              ElementsAre(Pair("q", "halo 1")));
}

TEST_F(PlacementsTest, DenseForWhoeverKnowsNothingElse) {
  EXPECT_THAT(Choose(std::string(kModules) + R"(
  %a: u8[1,1,8,8]<scale=0.5> = call_module @c(%q)
  %sum: u8[1,1,8,8]<scale=0.5> = call_module @add(%q, %a)
  %b: u8[1,1,8,8]<scale=0.5> = call_module @c(%sum)
  output(%b)
)"),
              IsEmpty());
}

TEST_F(PlacementsTest, DenseOutputsAndInputs) {
  EXPECT_THAT(Choose(R"(
  param @c.weight: i8[1,1,3,3]<scale=0.01> = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  module @c = int8.conv2d(out_scale=0.5, padding=[1, 1, 1, 1], weight=@c.weight)
  %x: u8[1,1,8,8]<scale=0.5> = placeholder
  %a: u8[1,1,8,8]<scale=0.5> = call_module @c(%x)
  %b: u8[1,1,8,8]<scale=0.5> = call_module @c(%a)
  output(%a, %b)
)"),
              IsEmpty());
}

}  // namespace
}  // namespace fuselage::runtime
