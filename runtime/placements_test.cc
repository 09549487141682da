#include "runtime/placements.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
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
// quantize writes and pools read and write everything; cats know what is even; additions know dense tensors only.
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
    kernels_.Register({"cat", kernels::LayoutRule::kSame, never, [](const KernelDesc& desc) {
                         const auto& inputs = desc.input_placements;
                         return desc.output_placement.even() &&
                                std::all_of(inputs.begin(), inputs.end(), [](const Placement& p) { return p.even(); });
                       }});
    kernels_.Register({"int8.add", kernels::LayoutRule::kSame, never});
  }

  // By name of the value.
  std::map<std::string, std::string> Choose(const std::string& body) {
    const auto graph = ir::Parse("graph @g {\n" + body + "}\n", ops_);
    EXPECT_OK(graph);
    std::map<std::string, std::string> chosen;
    if (!graph.ok()) return chosen;
    for (const auto& [node, place] :
         ChoosePlacements(**graph, *ConstantsOf(**graph, 0), kernels_, kernels::Isa::kScalar, 1)) {
      chosen[node->name()] = kernels::PlacementText(place.placement);
      if (place.whole != nullptr) {
        absl::StrAppend(&chosen[node->name()], " in ", place.whole->name(), " from ", place.channel);
      }
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

// --- Cats. @p is a pool that changes no shape; the values of kModules have one channel.
constexpr char kPool[] = R"(
  module @p = int8.max_pool2d(kernel_size=[1, 1], stride=[1, 1])
)";

TEST_F(PlacementsTest, OperandsInTheirCat) {
  EXPECT_THAT(Choose(std::string(kPool) + kModules + R"(
  %a: u8[1,1,8,8]<scale=0.5> = call_module @p(%q)
  %b: u8[1,1,8,8]<scale=0.5> = call_module @p(%a)
  %ab: u8[1,2,8,8]<scale=0.5> = call_function cat(%a, %b, dim=-3)
  %r: u8[1,2,8,8]<scale=0.5> = call_module @p(%ab)
  output(%r)
)"),
              ElementsAre(Pair("a", "2 bytes a pixel in ab from 0"), Pair("ab", "dense in ab from 0"),
                          Pair("b", "2 bytes a pixel in ab from 1")));
}

// What the graph is given, an operand's second occurrence, and what an addition makes or reads.
TEST_F(PlacementsTest, OperandsThatACatCopies) {
  EXPECT_THAT(Choose(std::string(kPool) + kModules + R"(
  %in: u8[1,1,8,8]<scale=0.5> = placeholder
  %a: u8[1,1,8,8]<scale=0.5> = call_module @p(%q)
  %read: u8[1,1,8,8]<scale=0.5> = call_module @p(%q)
  %sum: u8[1,1,8,8]<scale=0.5> = call_module @add(%read, %read)
  %cat: u8[1,5,8,8]<scale=0.5> = call_function cat(%in, %a, %a, %read, %sum, dim=1)
  %none: u8[1,2,8,8]<scale=0.5> = call_function cat(%in, %sum, dim=1)
  output(%cat, %none)
)"),
              ElementsAre(Pair("a", "5 bytes a pixel in cat from 1"), Pair("cat", "dense in cat from 0")));
}

TEST_F(PlacementsTest, NoPlaceInCatsOfOtherAxes) {
  EXPECT_THAT(Choose(std::string(kPool) + kModules + R"(
  %a: u8[1,1,8,8]<scale=0.5> = call_module @p(%q)
  %cat: u8[1,1,16,8]<scale=0.5> = call_function cat(%a, %a, dim=2)
  output(%cat)
)"),
              IsEmpty());
}

// Quantized row-major as far as the graph says: a cat of it alone is not known to be in NHWC.
TEST_F(PlacementsTest, NoPlaceInACatThatMayBeRowMajor) {
  EXPECT_THAT(Choose(std::string(kModules) + R"(
  %cat: u8[1,2,8,8]<scale=0.5> = call_function cat(%q, %q, dim=1)
  output(%cat)
)"),
              IsEmpty());
}

TEST_F(PlacementsTest, ACatInACat) {
  EXPECT_THAT(Choose(std::string(kPool) + kModules + R"(
  %a: u8[1,1,8,8]<scale=0.5> = call_module @p(%q)
  %b: u8[1,1,8,8]<scale=0.5> = call_module @p(%q)
  %inner: u8[1,2,8,8]<scale=0.5> = call_function cat(%a, %q, dim=1)
  %outer: u8[1,3,8,8]<scale=0.5> = call_function cat(%b, %inner, dim=1)
  output(%outer)
)"),
              ElementsAre(Pair("a", "3 bytes a pixel in outer from 1"), Pair("b", "3 bytes a pixel in outer from 0"),
                          Pair("inner", "3 bytes a pixel in outer from 1"), Pair("outer", "dense in outer from 0")));
}

// DenseNet's: each cat has the operands of the one before it and one more. Where the reader of one cannot read a slice,
// that cat copies.
TEST_F(PlacementsTest, CatsOfAChainAreSlicesOfTheLast) {
  const auto chain = [&](const std::string& reader) {
    return Choose(std::string(kPool) + kModules + R"(
  %a: u8[1,1,8,8]<scale=0.5> = call_module @p(%q)
  %b: u8[1,1,8,8]<scale=0.5> = call_module @p(%a)
  %ab: u8[1,2,8,8]<scale=0.5> = call_function cat(%a, %b, dim=1)
  %r: u8[1,2,8,8]<scale=0.5> = )" +
                  reader + R"(
  %c: u8[1,1,8,8]<scale=0.5> = call_module @p(%b)
  %abc: u8[1,3,8,8]<scale=0.5> = call_function cat(%a, %b, %c, dim=1)
  output(%abc, %r)
)");
  };
  const auto in_abc = [](const std::string& channel) { return "3 bytes a pixel in abc from " + channel; };
  EXPECT_THAT(chain("call_module @p(%ab)"),
              ElementsAre(Pair("a", in_abc("0")), Pair("ab", in_abc("0")), Pair("abc", "dense in abc from 0"),
                          Pair("b", in_abc("1")), Pair("c", in_abc("2"))));
  EXPECT_THAT(chain("call_module @add(%ab, %ab)"),
              ElementsAre(Pair("a", in_abc("0")), Pair("abc", "dense in abc from 0"), Pair("b", in_abc("1")),
                          Pair("c", in_abc("2"))));
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
