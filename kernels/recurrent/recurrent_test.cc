#include "kernels/recurrent/recurrent.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/testing/reference.h"

namespace fuselage::recurrent {
namespace {

using kernels::GuardedMemory;
using Strings = std::vector<std::string>;

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    return created;
  }();
  return *registry;
}

struct Sizes {
  int64_t steps, sequences, inputs, units, directions;
};

// Scaled so that gates are neither 0 nor 1.
Tensor Values(Shape shape, uint64_t seed, float scale) {
  Tensor x = SeededTensor(kernels::Floats(std::move(shape)), seed);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] *= scale;
  return x;
}

// Everything that may be absent is there if `full`.
kernels::OpCall Layer(const std::string& op, const Sizes& s, bool full, AttributeMap attributes) {
  const int64_t rows = GatesOf(op) * s.units;
  const float scale = 1 / std::sqrt(static_cast<float>(s.inputs + s.units));
  kernels::OpCall call{
      op,
      {Values({s.steps, s.sequences, s.inputs}, 1, 1), Values({s.directions, rows, s.inputs}, 2, scale),
       Values({s.directions, rows, s.units}, 3, scale)},
      std::move(attributes)};
  if (s.directions == 2) call.attributes.emplace("direction", "bidirectional");
  if (!full) return call;
  Tensor lengths(DType::kI32, {s.sequences});
  for (int64_t n = 0; n < s.sequences; ++n) lengths.Set(n, (n * 3 + 1) % (s.steps + 1));
  call.operands.push_back(Values({s.directions, 2 * rows}, 4, 0.5f));
  call.operands.push_back(lengths);
  call.operands.push_back(Values({s.directions, s.sequences, s.units}, 5, 1));
  if (op == "lstm") {
    call.operands.push_back(Values({s.directions, s.sequences, s.units}, 6, 1));
    call.operands.push_back(Values({s.directions, 3 * s.units}, 7, 0.5f));
  }
  return call;
}

absl::StatusOr<std::vector<Tensor>> Results(const kernels::OpCall& call, kernels::Isa isa, int threads) {
  kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  desc.isa = isa;
  desc.threads = threads;
  return RunCall(*Kernels().FindOrNull(call.op), call, desc);
}

std::vector<Tensor> Reference(const kernels::OpCall& call) {
  std::vector<std::vector<Tensor>> values;
  std::vector<ir::Type> types;
  for (const auto& operand : call.operands) {
    values.push_back(operand ? std::vector<Tensor>{*operand} : std::vector<Tensor>());
    types.push_back(operand ? ir::Type(operand->type()) : ir::Type());
  }
  std::vector<const std::vector<Tensor>*> operands;
  std::vector<const ir::Type*> operand_types;
  for (size_t i = 0; i < values.size(); ++i) {
    operands.push_back(values[i].empty() ? nullptr : &values[i]);
    operand_types.push_back(values[i].empty() ? nullptr : &types[i]);
  }
  const ir::OpSchema& schema = *kernels::Ops().FindOrNull(call.op);
  const auto type = ir::Infer(schema, call.attributes, operand_types);
  EXPECT_TRUE(type.ok()) << type.status();
  auto results = ir::Evaluate(schema, call.attributes, operands, *type);
  EXPECT_TRUE(results.ok()) << results.status();
  return *std::move(results);
}

// Near the reference; and the same bits on all instruction sets and numbers of threads.
void Check(const kernels::OpCall& call, const std::string& what) {
  const std::vector<Tensor> wanted = Reference(call);
  const auto scalar = Results(call, kernels::Isa::kScalar, 1);
  ASSERT_TRUE(scalar.ok()) << what << ": " << scalar.status();
  ASSERT_EQ(scalar->size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (int64_t k = 0; k < wanted[i].num_elements(); ++k) {
      ASSERT_NEAR((*scalar)[i].At(k), wanted[i].At(k), 2e-6) << what << ": result " << i << " element " << k;
    }
  }
  for (const kernels::Isa isa : kernels::SupportedIsas()) {
    for (const int threads : {1, 3}) {
      const auto found = Results(call, isa, threads);
      ASSERT_TRUE(found.ok()) << what << ": " << found.status();
      for (size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_TRUE((*found)[i].SameBytes((*scalar)[i])) << what << ": result " << i << " on " << IsaName(isa);
      }
    }
  }
}

TEST(Recurrent, IsTheReferenceWithTheSameBitsEverywhere) {
  const Sizes sizes[] = {{4, 1, 3, 1, 1},  {3, 2, 5, 7, 2},   {5, 7, 8, 8, 1}, {2, 3, 1, 9, 2}, {3, 1, 33, 40, 2},
                         {60, 2, 3, 5, 1}, {2, 3, 70, 65, 1}, {0, 2, 3, 4, 2}, {3, 0, 2, 4, 1}, {3, 2, 0, 4, 1}};
  for (const char* op : {"rnn", "gru", "lstm"}) {
    for (const Sizes& s : sizes) {
      for (const bool full : {false, true}) {
        Check(Layer(op, s, full, {}), absl::StrCat(op, " of ", s.steps, " steps, ", s.units, " units, full ", full));
      }
    }
  }
}

TEST(Recurrent, AttributesOfEachOp) {
  const Sizes s{4, 3, 5, 9, 1};
  Check(Layer("gru", s, true, {{"linear_before_reset", true}}), "linear_before_reset");
  Check(Layer("gru", {40, 4, 64, 64, 2}, false, {{"linear_before_reset", true}}), "linear_before_reset, both ways");
  Check(Layer("lstm", s, true, {{"input_forget", true}}), "input_forget");
  for (const char* op : {"rnn", "gru", "lstm"}) {
    Check(Layer(op, s, true, {{"clip", 0.2}}), absl::StrCat(op, " clip"));
    Check(Layer(op, s, true, {{"direction", "reverse"}}), absl::StrCat(op, " reverse"));
  }
}

TEST(Recurrent, Activations) {
  for (const char* name : {"affine", "elu", "hard_sigmoid", "leaky_relu", "relu", "scaled_tanh", "sigmoid", "softsign",
                           "tanh", "thresholded_relu"}) {
    const AttributeMap attributes = {
        {"activations", Strings{name}}, {"alpha", std::vector<double>{0.25}}, {"beta", std::vector<double>{0.5}}};
    Check(Layer("rnn", {4, 2, 3, 9, 1}, true, attributes), name);
  }
  const Strings both = {"hard_sigmoid", "softsign", "relu", "sigmoid", "tanh", "affine"};
  Check(Layer("lstm", {3, 2, 3, 9, 2}, true, {{"activations", both}}), "of both directions");
}

// As quantize leaves them, where no kernel on codes takes the call.
TEST(Recurrent, QuantizedWeightsMeanTheirRealValues) {
  for (const char* op : {"gru", "lstm"}) {
    kernels::OpCall call = Layer(op, {4, 3, 5, 9, 2}, true, {});
    for (const int i : {1, 2}) {
      const Shape shape = call.operands[i]->shape();
      std::vector<float> scales;
      for (int64_t row = 0; row < shape[1]; ++row) scales.push_back(0.001f + 0.0005f * static_cast<float>(row % 5));
      call.operands[i] = SeededTensor({DType::kI8, shape, PerAxis(1, scales), Layout::kRowMajor}, 8 + i);
    }
    Check(call, op);
  }
}

TEST(Recurrent, ALengthBeyondTheStepsIsAnError) {
  kernels::OpCall call = Layer("rnn", {4, 2, 3, 5, 1}, true, {});
  call.operands[4] = Tensor::Of<int32_t>({2}, {4, 5});
  EXPECT_EQ(Results(call, kernels::Isa::kScalar, 1).status().message(),
            "sequence_lens: found 5, wanted values in [0, 4]");
}

TEST(Recurrent, DeclinesOtherTypes) {
  kernels::OpCall call = Layer("rnn", {4, 2, 3, 5, 1}, false, {});
  for (auto& operand : call.operands) operand = Cast(*operand, DType::kF64);
  EXPECT_EQ(Results(call, kernels::Isa::kScalar, 1).status().code(), absl::StatusCode::kUnimplemented);
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, HasTheBitsOfScalar) {
  for (const int64_t rows : {0, 1, 2, 5, 6, 7, 13}) {
    for (const int64_t depth : {0, 1, 17}) {
      const Tensor x = SeededTensor(kernels::Floats({rows * (depth + 1) + 1}), 1);
      const Tensor panel = SeededTensor(kernels::Floats({depth * kPanel + 1}), 2);
      const int64_t bytes = 4 * rows * kPanel;
      const Tensor initial = SeededTensor(kernels::Floats({(rows + 1) * kPanel}), 3);
      for (const int64_t stride : {int64_t{0}, kPanel}) {
        GuardedMemory wanted(bytes), found(bytes, 4);
        const auto multiply = [&](MultiplyFunction* function, GuardedMemory& sums) {
          function(x.data<float>() + 1, depth + 1, rows, panel.data<float>() + 1, depth,
                   {initial.data<float>() + 1, stride}, sums.as<float>());
        };
        multiply(scalar::Multiply, wanted);
        multiply(GetParam().multiply, found);
        ASSERT_TRUE(bytes == 0 || std::memcmp(wanted.data(), found.data(), bytes) == 0) << rows << " by " << depth;
        ASSERT_TRUE(found.guards_intact());
      }
    }
  }
  for (int i = 0; i <= static_cast<int>(Activation::kThresholdedRelu); ++i) {
    for (const int64_t n : {0, 1, 8, 31, 32}) {
      GuardedMemory wanted(4 * n), found(4 * n, 4);
      for (int64_t k = 0; k < n; ++k) wanted.as<float>()[k] = found.as<float>()[k] = 0.4f * static_cast<float>(k) - 6;
      scalar::Activate(static_cast<Activation>(i), 0.25f, 0.5f, wanted.as<float>(), n);
      GetParam().activate(static_cast<Activation>(i), 0.25f, 0.5f, found.as<float>(), n);
      ASSERT_TRUE(n == 0 || std::memcmp(wanted.data(), found.data(), 4 * n) == 0) << i;
      ASSERT_TRUE(found.guards_intact());
    }
  }
}

std::vector<Variant> AllVariants() {
  std::vector<Variant> variants(Variants().begin(), Variants().end());
  variants.push_back(
      {"avx512_vnni_emulated", kernels::Isa::kScalar, avx512_vnni_emulated::Multiply, avx512_vnni_emulated::Activate});
  return variants;
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest, ::testing::ValuesIn(AllVariants()), kernels::VariantName());

}  // namespace
}  // namespace fuselage::recurrent
