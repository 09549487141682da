#include "kernels/int8/group_norm/group_norm.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/base/activation.h"
#include "kernels/int8/group_norm/group_norm_cases.h"

namespace fuselage::int8::group_norm {
namespace {

using kernels::GuardedMemory;
using ::testing::HasSubstr;

TEST(GroupNorm, HasTheReferencesBits) {
  kernels::KernelRegistry kernels;
  Register(kernels);
  for (const Case& c : Cases()) {
    EXPECT_EQ(DifferenceFromReference(kernels, c.call()), "")
        << ToString(c.x()) << " in " << c.groups << " groups, " << c.activation;
  }
}

// Codes at both ends alone, in which sums are largest, and one code alone, which has no variance.
TEST(GroupNorm, ExtremeCodes) {
  kernels::KernelRegistry kernels;
  Register(kernels);
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    for (const int spread : {0, 255}) {
      kernels::OpCall call = Case{{1, 4, 300, 300}, 2, dtype, dtype, "silu"}.call();
      auto* codes = static_cast<uint8_t*>(call.operands[0]->raw_data());
      for (int64_t i = 0; i < call.operands[0]->num_elements(); ++i) {
        codes[i] = static_cast<uint8_t>((dtype == DType::kU8 ? 255 : 127) - (i % 7 == 0 ? spread : 0));
      }
      EXPECT_EQ(DifferenceFromReference(kernels, call), "");
    }
  }
}

// What runs without the instruction set has the scalar functions' bits as well.
TEST(GroupNorm, EmulatedEqualsScalar) {
  const ElementwiseInstruction silu = elementwise::ForCodes(*ParseActivation("silu")->function);
  for (const int64_t channels : {1, 3, 16, 23}) {
    for (const int64_t pixels : {1, 16, 41}) {
      const int64_t n = channels * pixels, room = (n + 15) / 16 * 16;
      GuardedMemory x(n, 1), wanted(4 * room, 4), found(4 * room, 4);
      for (int64_t i = 0; i < n; ++i) x.data()[i] = static_cast<uint8_t>(i * 37);
      const Pixels p{x.data(), pixels, channels, 0x80, 77};
      std::vector<Sums> wanted_sums(channels), found_sums(channels);
      scalar::Add(p, wanted_sums.data());
      avx512_vnni_emulated::Add(p, found_sums.data());
      EXPECT_EQ(std::memcmp(wanted_sums.data(), found_sums.data(), channels * sizeof(Sums)), 0);
      std::vector<float> gains(channels), offsets(channels);
      for (int64_t c = 0; c < channels; ++c) {
        gains[c] = 0.017f * static_cast<float>(c + 1);
        offsets[c] = 0.31f - static_cast<float>(c);
      }
      for (const ElementwiseInstruction* function : {static_cast<const ElementwiseInstruction*>(nullptr), &silu}) {
        scalar::Scale(p, gains.data(), offsets.data(), function, wanted.as<float>());
        avx512_vnni_emulated::Scale(p, gains.data(), offsets.data(), function, found.as<float>());
        EXPECT_EQ(std::memcmp(wanted.data(), found.data(), 4 * n), 0) << channels << " channels";
        EXPECT_TRUE(found.guards_intact());
      }
    }
  }
}

TEST(GroupNorm, Declines) {
  kernels::OpCall call = Case{{2, 4, 3, 3}, 2}.call();
  kernels::KernelDesc desc = DescOf(call, Layout::kNhwc, Layout::kNhwc);
  desc.inputs[0] = kernels::Floats({2, 4, 3, 3}, Layout::kNhwc);
  EXPECT_EQ(Create(desc).status().code(), absl::StatusCode::kUnimplemented);
  call.operands[0] = Tensor(kernels::Codes(DType::kU8, {0, 4, 3, 3}, 1, 0));
  EXPECT_THAT(Create(DescOf(call, Layout::kNhwc, Layout::kNhwc)).status().message(), HasSubstr("is empty"));
}

}  // namespace
}  // namespace fuselage::int8::group_norm
