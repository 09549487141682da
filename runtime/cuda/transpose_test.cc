#include "runtime/cuda/transpose.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/parallel.h"
#include "runtime/reorder.h"

namespace fuselage::runtime::cuda {
namespace {

// The device's kernel, emulated, against the CPU's.
template <typename T>
void ExpectTransposes(int64_t batch, int64_t rows, int64_t columns) {
  std::vector<T> from(batch * rows * columns), wanted(from.size()), found(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 0x9e3779b97f4a7c15u);
  kernels::Serial serial;
  Transpose(batch, rows, columns, sizeof(T), from.data(), wanted.data(), serial);

  using Kernel = TransposeTiles<T>;
  fuselage::cuda::Emulator emulator;
  const int64_t bytes = static_cast<int64_t>(from.size() * sizeof(T));
  emulator.AllowReads("from", from.data(), bytes);
  emulator.AllowWrites("to", found.data(), bytes);
  const int blocks = static_cast<int>(Kernel::Blocks(batch, rows, columns));
  emulator.Launch<Kernel>({blocks, 1, 1}, Kernel::kSharedBytes, {rows, columns, from.data(), found.data()});
  EXPECT_EQ(emulator.error(), "");
  EXPECT_EQ(found, wanted) << batch << " x " << rows << " x " << columns << ", " << sizeof(T) << " bytes";
}

TEST(TransposeTiles, AllElementSizes) {
  for (int64_t batch : {1, 3}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {1, 40}, {40, 1}, {3, 100}, {31, 33}, {32, 32}, {64, 49}, {70, 3}}) {
      ExpectTransposes<uint8_t>(batch, rows, columns);
      ExpectTransposes<uint16_t>(batch, rows, columns);
      ExpectTransposes<uint32_t>(batch, rows, columns);
      ExpectTransposes<uint64_t>(batch, rows, columns);
    }
  }
}

}  // namespace
}  // namespace fuselage::runtime::cuda
