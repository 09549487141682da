#include <algorithm>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/isa.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::kernels {
namespace {

using ::testing::HasSubstr;

TEST(Isa, NamesRoundTrip) {
  std::vector<Isa> sets = {Isa::kAvxVnni | Isa::kAvx512Vnni, Isa::kAvxVnni | Isa::kAmx};
  sets.insert(sets.end(), AllIsas().begin(), AllIsas().end());
  for (const Isa isa : sets) {
    const absl::StatusOr<Isa> parsed = IsaFromName(IsaName(isa));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, isa);
  }
  EXPECT_EQ(IsaName(Isa::kAvxVnni | Isa::kAmx), "avx_vnni+amx");
  EXPECT_EQ(IsaFromName("avx2+amx").value(), Isa::kAmx);
  for (const char* name : {"sse9", "", "avx2+", "avx2+sse9"}) {
    EXPECT_EQ(IsaFromName(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_THAT(std::string(IsaFromName("avx2+sse9").status().message()), HasSubstr("'sse9'"));
}

TEST(Isa, IsASetOfFeatures) {
  EXPECT_TRUE(Isa::kAmx.Includes(Isa::kAvx512Vnni));
  EXPECT_TRUE(Isa::kAvx512Vnni.Includes(Isa::kAvx2));
  EXPECT_FALSE(Isa::kAvx512Vnni.Includes(Isa::kAvxVnni));
  EXPECT_FALSE(Isa::kAvxVnni.Includes(Isa::kAvx512Vnni));
  EXPECT_TRUE((Isa::kAvxVnni | Isa::kAvx512Vnni).Includes(Isa::kAvxVnni));
}

TEST(Isa, OfThisMachineIncludesScalar) {
  EXPECT_TRUE(CpuSupports(Isa::kScalar));
  EXPECT_TRUE(CpuSupports(BestIsa()));
  EXPECT_FALSE(CpuName().empty());
  std::printf("%s: %s\n", CpuName().c_str(), std::string(IsaName(BestIsa())).c_str());
}

TEST(Variant, TakesTheBestThatIsAllowedAndAccepts) {
  using Toy = Variant<int, int()>;
  const auto even = [](const int& n) { return n % 2 == 0; };
  const std::vector<Toy> table = {{"scalar", Isa::kScalar, nullptr, nullptr},
                                  {"scalar even", Isa::kScalar, even, nullptr},
                                  {"avx2 even", Isa::kAvx2, even, nullptr}};
  const absl::Span<const Toy> span = table;
  EXPECT_STREQ(BestVariant(span, Isa::kScalar, 1).name, "scalar");
  EXPECT_STREQ(BestVariant(span, Isa::kScalar, 2).name, "scalar even");
  EXPECT_STREQ(BestVariant(span, Isa::kAmx, 1).name, "scalar");
  EXPECT_STREQ(BestVariant(span, Isa::kAmx, 2).name, CpuSupports(Isa::kAvx2) ? "avx2 even" : "scalar even");
}

// Records ranges; `threads` as a pool would have them, run one after the other.
class FakeThreads : public Serial {
 public:
  explicit FakeThreads(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }

 private:
  int threads_;
};

TEST(ForRanges, CoversEverythingOnceInMultiplesOfTheGrain) {
  for (const int threads : {1, 2, 3, 16}) {
    for (const int64_t n : {0, 1, 63, 64, 65, 1000, 4096}) {
      FakeThreads parallel(threads);
      int64_t next = 0;
      int ranges = 0;
      ForRanges(parallel, n, 64, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin, next);
        EXPECT_LT(begin, end);
        EXPECT_EQ(begin % 64, 0);
        next = end;
        ++ranges;
      });
      EXPECT_EQ(next, n);
      EXPECT_LE(ranges, threads);
      EXPECT_EQ(ranges, std::min<int64_t>(threads, (n + 63) / 64));
    }
  }
}

class Copy : public UnaryKernel {
 public:
  explicit Copy(const KernelDesc& desc, int64_t scratch = 0) : UnaryKernel(desc) { set_scratch_bytes(scratch); }

 private:
  void ComputeUnary(const void* x, void* y, const RunContext&) const override {
    std::memcpy(y, x, outputs()[0].byte_size());
  }
};

KernelDesc CopyDesc() {
  KernelDesc desc;
  desc.op = "copy";
  const TensorType type{DType::kU8, {4}, PerTensor(0.5f, 3), Layout::kRowMajor};
  desc.inputs = {type};
  desc.outputs = {type};
  desc.attributes = {{"n", Attribute(7)}};
  return desc;
}

TEST(Kernel, ReportsTheOutputsParameters) {
  KernelDesc desc = CopyDesc();
  EXPECT_EQ(Copy(desc).output_scale(), 0.5f);
  EXPECT_EQ(Copy(desc).output_zero_point(), 3);
  desc.outputs[0] = TensorType{DType::kF32, {1}, std::nullopt, Layout::kRowMajor};
  EXPECT_EQ(Copy(desc).output_scale(), 1.0f);
  EXPECT_EQ(Copy(desc).output_zero_point(), 0);
  EXPECT_EQ(desc.GetInt("n"), 7);
  EXPECT_EQ(desc.ParameterOrNull("weight"), nullptr);
}

TEST(Kernel, ChecksItsBuffers) {
  const Copy kernel(CopyDesc(), /*scratch=*/16);
  Serial serial;
  uint8_t x[4] = {1, 2, 3, 4}, y[4] = {}, scratch[16];
  const RunContext context{&serial, {scratch, 16}};
  const auto message = [&](std::vector<ConstBuffer> in, std::vector<Buffer> out, const RunContext& c) {
    const absl::Status status = kernel.Run(in, out, c);
    return std::string(status.message());
  };
  EXPECT_EQ(message({{x, 4}}, {{y, 4}}, context), "");
  EXPECT_EQ(std::memcmp(x, y, 4), 0);
  EXPECT_THAT(message({}, {{y, 4}}, context), HasSubstr("0 inputs"));
  EXPECT_THAT(message({{x, 3}}, {{y, 4}}, context), HasSubstr("input 0 has 3 bytes, wanted 4"));
  EXPECT_THAT(message({{nullptr, 4}}, {{y, 4}}, context), HasSubstr("input 0 has 0 bytes"));
  EXPECT_THAT(message({{x, 4}}, {{y, 2}}, context), HasSubstr("output 0 has 2 bytes"));
  EXPECT_THAT(message({{x, 4}}, {{y, 4}}, RunContext{&serial, {scratch, 15}}), HasSubstr("scratch has 15"));
  EXPECT_THAT(message({{x, 4}}, {{y, 4}}, RunContext{nullptr, {scratch, 16}}), HasSubstr("threads"));
}

TEST(Kernel, ChecksCodes) {
  TensorType type{DType::kU8, {2}, PerTensor(0.5f, 3), Layout::kRowMajor};
  EXPECT_TRUE(CheckCodes(type, "x").ok());
  TensorType other = type;
  EXPECT_TRUE(CheckSameQuantization(type, other, "pool").ok());
  other.quant->zero_points[0] = 4;
  EXPECT_THAT(std::string(CheckSameQuantization(type, other, "pool").message()), HasSubstr("zp=4"));
  other.quant->zero_points[0] = 300;
  EXPECT_THAT(std::string(CheckCodes(other, "x").message()), HasSubstr("zero point 300 not in [0, 255]"));
  other.quant.reset();
  EXPECT_EQ(CheckCodes(other, "x").code(), absl::StatusCode::kInvalidArgument);
  other.dtype = DType::kF32;
  EXPECT_EQ(CheckCodes(other, "x").code(), absl::StatusCode::kUnimplemented);
  type.quant = PerAxis(0, {1.0f, 2.0f});
  EXPECT_EQ(CheckCodes(type, "x").code(), absl::StatusCode::kUnimplemented);
}

TEST(PackedWeights, PacksOncePerOperandAndLayout) {
  PackedWeights weights;
  KernelDesc desc = CopyDesc();
  desc.weights = &weights;
  auto w = std::make_shared<const Tensor>(SeededTensor({DType::kI8, {8}, std::nullopt, Layout::kRowMajor}, 1));
  desc.parameters = {{"weight", w}, {"bias", std::make_shared<const Tensor>(*w)}};
  const auto get = [&](const char* name, const char* layout) {
    return desc.Packed(name, layout, [&] { return *desc.ParameterOrNull(name); });
  };
  const auto packed = get("weight", "a i8[8]");
  EXPECT_EQ(get("weight", "a i8[8]"), packed);
  EXPECT_EQ(weights.packings(), 1);
  EXPECT_NE(get("weight", "b i8[8]"), packed);
  EXPECT_NE(get("bias", "a i8[8]"), packed) << "equal values of another owner";
  EXPECT_EQ(weights.packings(), 3);
  // Gone with its operand, once something else is packed.
  const std::weak_ptr<const Tensor> bias = get("bias", "a i8[8]");
  desc.parameters.erase("bias");
  get("weight", "c i8[8]");
  EXPECT_TRUE(bias.expired());
  EXPECT_EQ(get("weight", "a i8[8]"), packed);

  desc.parameters = {{"weight", w.get()}};
  EXPECT_NE(get("weight", "a i8[8]"), get("weight", "a i8[8]")) << "borrowed";
  desc.parameters = {{"weight", w}};
  desc.weights = nullptr;
  EXPECT_NE(get("weight", "a i8[8]"), get("weight", "a i8[8]")) << "shared with nobody";
}

TEST(Registry, FindsByOpAndSaysWhatItSupports) {
  KernelRegistry registry;
  const auto create = [](const KernelDesc& desc) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return std::make_unique<Copy>(desc);
  };
  registry.Register({"int8.b", LayoutRule::kSame, create});
  registry.Register({"a", LayoutRule::kSame, create});
  EXPECT_EQ(registry.FindOrNull("b"), nullptr);
  KernelDesc desc;
  desc.outputs = {{DType::kF32, {2}, std::nullopt, Layout::kRowMajor}};
  desc.inputs = {desc.outputs[0]};
  KernelEntry entry = *registry.FindOrNull("a");
  EXPECT_EQ(entry.Supports(desc).value(), (*entry.create(desc))->variant());
  entry.variant = [](const KernelDesc&) -> absl::StatusOr<std::string> { return absl::UnimplementedError("no"); };
  EXPECT_EQ(entry.Supports(desc).status().message(), "no");
  ASSERT_EQ(registry.Sorted().size(), 2);
  EXPECT_EQ(registry.Sorted()[0]->op, "a");
  EXPECT_DEATH(registry.Register({"a", LayoutRule::kSame, create}), "inserted");
}

}  // namespace
}  // namespace fuselage::kernels
