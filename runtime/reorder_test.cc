#include "runtime/reorder.h"

#include <vector>

#include "gtest/gtest.h"
#include "runtime/thread_pool.h"

namespace fuselage::runtime {
namespace {

template <typename T>
void CheckBothWays(const Shape& shape, int threads) {
  ThreadPool pool(threads);
  const TensorType type{DTypeOf<T>::value, shape, std::nullopt, Layout::kRowMajor};
  const int64_t n = shape[0], c = shape[1], h = shape[2], w = shape[3];
  const int64_t elements = n * c * h * w;
  std::vector<T> nchw(elements), nhwc(elements + 1), back(elements + 1);
  for (int64_t i = 0; i < elements; ++i) nchw[i] = static_cast<T>(i * 2654435761u + i / 7);
  nhwc[elements] = back[elements] = T{42};

  Reorder(type, nchw.data(), nhwc.data(), pool);
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t x = i % w, y = i / w % h, channel = i / (w * h) % c, image = i / (w * h * c);
    ASSERT_EQ(nhwc[((image * h + y) * w + x) * c + channel], nchw[i]) << ToString(type) << " element " << i;
  }
  TensorType other = type;
  other.layout = Layout::kNhwc;
  Reorder(other, nhwc.data(), back.data(), pool);
  for (int64_t i = 0; i < elements; ++i) ASSERT_EQ(back[i], nchw[i]);
  EXPECT_EQ(nhwc[elements], T{42});
  EXPECT_EQ(back[elements], T{42});
}

TEST(Reorder, BothWays) {
  const std::vector<Shape> shapes = {{1, 3, 4, 5},    {2, 1, 3, 3},   {1, 64, 1, 1}, {3, 65, 7, 9},
                                     {2, 3, 97, 101}, {1, 130, 8, 8}, {0, 3, 4, 4},  {1, 0, 4, 4}};
  for (const Shape& shape : shapes) {
    for (int threads : {1, 2, 3}) {
      CheckBothWays<uint8_t>(shape, threads);
      CheckBothWays<int16_t>(shape, threads);
      CheckBothWays<float>(shape, threads);
      CheckBothWays<int64_t>(shape, threads);
    }
  }
}

TEST(Reorder, SameInBothLayouts) {
  EXPECT_TRUE(SameInBothLayouts({2, 7, 1, 1}));
  EXPECT_TRUE(SameInBothLayouts({2, 1, 5, 5}));
  EXPECT_TRUE(SameInBothLayouts({2, 5}));
  EXPECT_TRUE(SameInBothLayouts({}));
  EXPECT_FALSE(SameInBothLayouts({2, 2, 1, 2}));
}

}  // namespace
}  // namespace fuselage::runtime
