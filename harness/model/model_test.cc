// The trained networks, as libraries of their own: to the bits of the files that they were made from.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/standalone/generate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/model/mobilenet_v2.h"
#include "harness/model/resnet18.h"
#include "harness/model/vit.h"
#include "ir/base/tensor.h"
#include "ir/testing/matchers.h"

namespace fuselage::standalone {
namespace {

using ::testing::HasSubstr;

template <typename Network, size_t kIn, size_t kOut>
void ExpectTheBitsOf(const std::string& name, const std::string& device,
                     bool (Network::*run)(const float (&)[kIn], float (&)[kOut])) {
  ASSERT_OK_AND_ASSIGN(const Model model, Load(absl::StrCat("harness/model/", name, ".fuse")));
  SessionOptions options;
  options.device = device;
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(model, options));
  for (const int threads : {1, 2}) {
    Network network;
    EXPECT_STREQ(network.error(), "");
    ASSERT_TRUE(network.Init(threads)) << network.error();
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const Tensor image = SeededTensor(model.inputs()[0].type, seed);
      Tensor wanted, logits(model.outputs()[0].type);
      ASSERT_OK(session.Run({{model.inputs()[0].name, image}}, {{model.outputs()[0].name, &wanted}}));
      ASSERT_EQ(image.num_elements(), static_cast<int64_t>(kIn));
      ASSERT_EQ(logits.num_elements(), static_cast<int64_t>(kOut));
      ASSERT_TRUE((network.*run)(*reinterpret_cast<const float(*)[kIn]>(image.data<float>()),
                                 *reinterpret_cast<float(*)[kOut]>(logits.data<float>())))
          << network.error();
      EXPECT_TRUE(logits.SameBytes(wanted)) << threads << " threads";
    }
  }
}

TEST(Standalone, MobileNetV2) { ExpectTheBitsOf("mobilenet_v2", "cpu", &mobilenet_v2::Network::Run); }
TEST(Standalone, ResNet18) { ExpectTheBitsOf("resnet18", "cpu", &resnet18::Network::Run); }
// Its last norm is in floats, which oneDNN sums in another order than all others.
TEST(Standalone, Vit) { ExpectTheBitsOf("vit", "reference", &vit::Network::Run); }

TEST(Standalone, SaysWhatIsWrong) {
  resnet18::Network network;
  EXPECT_FALSE(network.Init(0));
  EXPECT_THAT(network.error(), HasSubstr("0 threads, wanted 1 to"));
  EXPECT_TRUE(network.Init()) << network.error();
  EXPECT_STREQ(network.error(), "");
}

TEST(Standalone, WantsAnIdentifier) {
  ASSERT_OK_AND_ASSIGN(const Model model, Load("harness/model/resnet18.fuse"));
  GenerateOptions options;
  options.name = "a-b";
  EXPECT_THAT(std::string(Generate(model, options).status().message()), HasSubstr("\"a-b\" is no name"));
}

}  // namespace
}  // namespace fuselage::standalone
