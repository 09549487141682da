// On a GPU: a lowered network gives the interpreter's bits, and reorders of all element sizes are right. Without one:
// an error that says what is missing.
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/core/parallel.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/testing.h"
#include "runtime/reorder.h"
#include "third_party/cuda/testing/no_gpu.h"

#ifdef FUSELAGE_NO_CUDA
TEST(BackendTest, NeedsAToolkit) { FUSELAGE_NO_GPU("no CUDA toolkit on this machine"); }
#else
namespace fuselage::runtime::cuda {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class BackendTest : public ::testing::Test {
 protected:
  // On a machine without a GPU the error must speak of it.
  void SetUp() override {
    auto backend = OpenBackend();
    if (!backend.ok()) {
      EXPECT_EQ(backend.status().code(), absl::StatusCode::kFailedPrecondition) << backend.status();
      EXPECT_THAT(std::string(backend.status().message()),
                  AnyOf(HasSubstr("no NVIDIA driver"), HasSubstr("no CUDA device"), HasSubstr("older than")));
      FUSELAGE_NO_GPU("no CUDA device");
    }
    backend_ = *std::move(backend);
  }

  std::unique_ptr<Backend> backend_;
};

TEST_F(BackendTest, TransposesOnTheDevice) {
  Device& device = backend_->device();
  ASSERT_OK_AND_ASSIGN(const Handle stream, device.NewStream());
  kernels::Serial serial;
  for (int64_t element_bytes : {1, 2, 4, 8}) {
    for (int64_t batch : {1, 3, 70000}) {
      for (const auto& [rows, columns] : {std::make_pair(1, 1), std::make_pair(3, 7), std::make_pair(33, 65)}) {
        if (batch > 3 && rows > 3) continue;
        const int64_t bytes = batch * rows * columns * element_bytes;
        std::vector<uint8_t> from(bytes), wanted(bytes), found(bytes);
        for (int64_t i = 0; i < bytes; ++i) from[i] = static_cast<uint8_t>(i * 167 + i / 251);
        Transpose(batch, rows, columns, element_bytes, from.data(), wanted.data(), serial);
        ASSERT_OK_AND_ASSIGN(const Handle memory, device.Allocate(2 * bytes, "a test"));
        uint8_t* data = static_cast<uint8_t*>(memory.get());
        ASSERT_OK(device.Copy(data, from.data(), bytes, Direction::kHostToDevice, stream.get()));
        ASSERT_OK(device.Transpose(batch, rows, columns, element_bytes, data, data + bytes, stream.get()));
        ASSERT_OK(device.Copy(found.data(), data + bytes, bytes, Direction::kDeviceToHost, stream.get()));
        ASSERT_OK(device.Synchronize(stream.get()));
        EXPECT_EQ(found, wanted) << batch << " x " << rows << " x " << columns << ", " << element_bytes << " bytes";
      }
    }
  }
}

TEST_F(BackendTest, RunsANetwork) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  GraphBuilder g(ops);
  const ir::Graph& graph = ResidualNetwork(g);
  ASSERT_OK_AND_ASSIGN(const auto executable, CreateExecutable(graph, backend_->kernels(), &backend_->device()));
  for (uint64_t seed : {1, 2, 1}) ExpectMatchesInterpreter(graph, *executable, seed);
  EXPECT_GT(executable->device_seconds(), 0);
  executable->EnableProfile(true);
  ExpectMatchesInterpreter(graph, *executable, 3);
  for (const StepProfile& step : executable->profile()) {
    ASSERT_EQ(step.seconds.size(), 1);
    EXPECT_GT(step.seconds[0], 0) << step.node;
  }
}

}  // namespace
}  // namespace fuselage::runtime::cuda
#endif
