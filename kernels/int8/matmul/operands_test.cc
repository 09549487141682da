#include "kernels/int8/matmul/operands.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"

namespace fuselage::int8::matmul {
namespace {

using kernels::GuardedMemory;

// The panel that begins at column `first`, as the header describes it, and the sums of its u8 codes.
void Define(const PanelFunctions& panels, const Right& b, bool transposed, int64_t first, int64_t depth,
            std::vector<int8_t>* to, std::vector<uint32_t>* sums) {
  to->assign(panels.block * depth, 0);
  sums->assign(panels.block, 0);
  for (int64_t n = 0; n < panels.block; ++n) {
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t column = first + n;
      const bool exists = column < b.columns && k < b.rows;
      const int64_t at = transposed ? column * b.rows + k : k * b.columns + column;
      const uint8_t code = exists ? b.codes[at] ^ b.flip : 128;
      (*sums)[n] += code;
      (*to)[(k / panels.group * panels.block + n) * panels.group + k % panels.group] = static_cast<int8_t>(code ^ 0x80);
    }
  }
}

TEST(Panels, AreTheirDefinition) {
  std::vector<PanelFunctions> all(Panels().begin(), Panels().end());
  all.push_back(
      {kernels::Isa::kScalar, 16, 4, avx512_vnni_emulated::PackPanel, avx512_vnni_emulated::PackTransposedPanel});
  for (const PanelFunctions& panels : all) {
    if (!kernels::CpuSupports(panels.isa)) continue;
    for (const int64_t rows : {1, 3, 4, 15, 32, 49, 63, 64, 65, 80, 197, 300}) {
      for (const int64_t columns : {1, 7, 16, 17, 32, 49}) {
        for (const uint8_t flip : {0, 0x80}) {
          GuardedMemory codes(rows * columns, 1);
          for (int64_t i = 0; i < rows * columns; ++i) codes.as<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + i / 11);
          const Right b = {codes.as<uint8_t>(), rows, columns, flip};
          for (const int64_t step : {panels.group, panels.group == 1 ? 1 : 64}) {
            const int64_t depth = (rows + step - 1) / step * step;
            for (int64_t first = 0; first < columns; first += panels.block) {
              for (const bool transposed : {false, true}) {
                SCOPED_TRACE(::testing::Message()
                             << panels.block << " by " << panels.group << ": " << rows << " by " << columns
                             << ", depth " << depth << ", from " << first << (transposed ? ", transposed" : ""));
                GuardedMemory to(panels.block * depth, 1), sums(panels.block * sizeof(uint32_t), 4);
                (transposed ? panels.pack_transposed : panels.pack)(b, first, depth, to.as<int8_t>(),
                                                                    sums.as<uint32_t>());
                std::vector<int8_t> wanted;
                std::vector<uint32_t> wanted_sums;
                Define(panels, b, transposed, first, depth, &wanted, &wanted_sums);
                ASSERT_EQ(std::memcmp(to.data(), wanted.data(), wanted.size()), 0);
                ASSERT_EQ(std::memcmp(sums.data(), wanted_sums.data(), sums.size()), 0);
                ASSERT_TRUE(to.guards_intact() && sums.guards_intact());
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuselage::int8::matmul
