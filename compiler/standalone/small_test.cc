// A generated source has the same bits on every machine. This one lies in the tree, as generate_test says, so that
// nothing is generated where the test runs: under an emulator too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/standalone/small_logits.h"
#include "compiler/standalone/testdata/small.h"
#include "ir/base/tensor.h"

namespace fuselage::standalone {
namespace {

using ::testing::ElementsAreArray;

TEST(SmallTest, HasTheBitsOfEveryMachine) {
  const Tensor image = SeededTensor({DType::kF32, {1, 3, 32, 24}, std::nullopt, Layout::kRowMajor}, 1);
  for (const int threads : {1, 2}) {
    small::Network network;
    ASSERT_TRUE(network.Init(threads)) << network.error();
    float logits[5] = {};
    ASSERT_TRUE(network.Run(*reinterpret_cast<const float(*)[3 * 32 * 24]>(image.data<float>()), logits))
        << network.error();
    EXPECT_THAT(logits, ElementsAreArray(kSmallLogits)) << threads << " threads";
  }
}

TEST(SmallTest, SaysWhatIsWrong) {
  small::Network network;
  EXPECT_FALSE(network.Init(0));
  EXPECT_THAT(network.error(), ::testing::HasSubstr("0 threads, wanted 1 to"));
}

}  // namespace
}  // namespace fuselage::standalone
