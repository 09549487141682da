#include "kernels/core/broadcast.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace fuselage::kernels {
namespace {

// Row-major and NHWC, from every element on, for every length: rows of one element, of a few, and longer than there are
// rows of them.
TEST(Broadcast, GathersAsNumPyDoes) {
  const Shape to = {2, 3, 5, 2};
  for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
    for (int stretched = 0; stretched < 16; ++stretched) {  // A bit for each axis.
      Shape from = to;
      for (int axis = 0; axis < 4; ++axis) {
        if (stretched >> axis & 1) from[axis] = 1;
      }
      const TensorType small{DType::kI32, from, std::nullopt, layout}, large{DType::kI32, to, std::nullopt, layout};
      std::vector<int32_t> x(small.num_elements());
      std::iota(x.begin(), x.end(), 100);
      const Broadcast broadcast(small, large);
      const auto index = [&](const Shape& shape, int64_t n, int64_t c, int64_t h, int64_t w) {
        return layout == Layout::kNhwc ? ((n * shape[2] + h) * shape[3] + w) * shape[1] + c
                                       : ((n * shape[1] + c) * shape[2] + h) * shape[3] + w;
      };
      std::vector<int32_t> wanted(large.num_elements());
      for (int64_t n = 0; n < to[0]; ++n) {
        for (int64_t c = 0; c < to[1]; ++c) {
          for (int64_t h = 0; h < to[2]; ++h) {
            for (int64_t w = 0; w < to[3]; ++w) {
              wanted[index(to, n, c, h, w)] = x[index(from, n % from[0], c % from[1], h % from[2], w % from[3])];
            }
          }
        }
      }
      const int64_t size = large.num_elements();
      for (int64_t begin = 0; begin < size; ++begin) {
        for (int64_t n = 0; n <= size - begin; ++n) {
          std::vector<int32_t> found(n + 1, 7);
          broadcast.Gather(x.data(), begin, n, found.data());
          ASSERT_TRUE(std::equal(found.begin(), found.end() - 1, wanted.begin() + begin))
              << ToString(small) << " to " << ToString(large) << ": " << n << " from " << begin;
          ASSERT_EQ(found.back(), 7);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuselage::kernels
