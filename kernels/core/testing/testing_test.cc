#include "kernels/core/testing/testing.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace fuselage::kernels {
namespace {

TEST(EdgeMemory, EndsWithItsLastLine) {
  for (const int64_t bytes : {1, 63, 64, 65, 4096, 5000}) {
    GuardedMemory from(bytes);
    from.FillRandom(1);
    const EdgeMemory memory(ConstBuffer{from.data(), bytes});
    ASSERT_EQ(memory.buffer().bytes, bytes);
    const uint8_t* data = static_cast<const uint8_t*>(memory.buffer().data);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0);
    EXPECT_TRUE(std::equal(data, data + bytes, from.data()));
    const volatile uint8_t* end = data + (bytes + 63) / 64 * 64;
    EXPECT_EQ(end[-1], bytes % 64 == 0 ? from.data()[bytes - 1] : 0);
    EXPECT_DEATH(static_cast<void>(end[0]), "");
  }
}

}  // namespace
}  // namespace fuselage::kernels
