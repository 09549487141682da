// Against the reference evaluation, bit for bit, on all instruction sets.
#include "kernels/int8/recurrent/recurrent.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/base/recurrent.h"
#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::recurrent {
namespace {

using fuselage::recurrent::GatesOf;
using kernels::Floats;
using ::testing::HasSubstr;
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

Tensor Scaled(Shape shape, uint64_t seed, float scale) {
  Tensor x = SeededTensor(Floats(std::move(shape)), seed);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] *= scale;
  return x;
}

// Scales such that gates are neither 0 nor 1, another one for each row.
Tensor Weight(Shape shape, uint64_t seed) {
  std::vector<float> scales;
  for (int64_t row = 0; row < shape[1]; ++row) scales.push_back(0.0008f + 0.0003f * static_cast<float>(row % 7));
  return SeededTensor({DType::kI8, std::move(shape), PerAxis(1, std::move(scales)), Layout::kRowMajor}, seed);
}

// Everything that may be absent is there if `full`; i8 codes then, otherwise u8.
kernels::OpCall Layer(const std::string& op, const Sizes& s, bool full, AttributeMap attributes = {}) {
  const int64_t rows = GatesOf(op) * s.units;
  const TensorType x = kernels::Codes(full ? DType::kI8 : DType::kU8, {s.steps, s.sequences, s.inputs}, 0.01f, 7);
  kernels::OpCall call{
      absl::StrCat("int8.", op),
      {SeededTensor(x, 1), Weight({s.directions, rows, s.inputs}, 2), Weight({s.directions, rows, s.units}, 3)},
      std::move(attributes)};
  if (s.directions == 2) call.attributes.emplace("direction", "bidirectional");
  if (!full) return call;
  Tensor lengths(DType::kI32, {s.sequences});
  for (int64_t n = 0; n < s.sequences; ++n) lengths.Set(n, static_cast<double>((n * 3 + 1) % (s.steps + 1)));
  call.operands.push_back(Scaled({s.directions, 2 * rows}, 4, 0.5f));
  call.operands.push_back(lengths);
  call.operands.push_back(Scaled({s.directions, s.sequences, s.units}, 5, 1.1f));  // Some saturate.
  if (op == "lstm") {
    call.operands.push_back(Scaled({s.directions, s.sequences, s.units}, 6, 2));
    call.operands.push_back(Scaled({s.directions, 3 * s.units}, 7, 0.5f));
  }
  return call;
}

void ExpectTheReference(const kernels::OpCall& call, const std::string& what) {
  EXPECT_EQ(DifferenceFromReference(Kernels(), call), "") << what;
}

TEST(Int8Recurrent, HasTheReferencesBits) {
  const Sizes sizes[] = {{4, 1, 3, 1, 1},  {3, 2, 5, 7, 2},   {5, 7, 8, 8, 1},   {2, 3, 1, 9, 2},   {3, 1, 33, 40, 2},
                         {60, 2, 3, 5, 1}, {2, 3, 70, 65, 1}, {3, 20, 4, 64, 1}, {2, 4, 16, 300, 1}};
  for (const char* op : {"rnn", "gru", "lstm"}) {
    for (const Sizes& s : sizes) {
      for (const bool full : {false, true}) {
        ExpectTheReference(Layer(op, s, full),
                           absl::StrCat(op, " of ", s.steps, " steps, ", s.units, " units, full ", full));
      }
    }
  }
}

TEST(Int8Recurrent, WithoutStepsSequencesOrInputs) {
  for (const char* op : {"rnn", "gru", "lstm"}) {
    for (const Sizes& s : {Sizes{0, 2, 3, 4, 2}, Sizes{3, 0, 2, 4, 1}, Sizes{3, 2, 0, 4, 1}}) {
      ExpectTheReference(Layer(op, s, true), absl::StrCat(op, " of ", s.steps, " steps, ", s.sequences, " sequences"));
    }
  }
}

TEST(Int8Recurrent, AttributesOfEachOp) {
  const Sizes s{4, 3, 5, 9, 1};
  ExpectTheReference(Layer("gru", s, true, {{"linear_before_reset", true}}), "linear_before_reset");
  ExpectTheReference(Layer("gru", {40, 4, 64, 64, 2}, false, {{"linear_before_reset", true}}), "and both ways");
  ExpectTheReference(Layer("lstm", s, true, {{"input_forget", true}}), "input_forget");
  for (const char* op : {"rnn", "gru", "lstm"}) {
    ExpectTheReference(Layer(op, s, true, {{"clip", 0.2}}), absl::StrCat(op, " clip"));
    ExpectTheReference(Layer(op, s, true, {{"direction", "reverse"}}), absl::StrCat(op, " reverse"));
  }
}

TEST(Int8Recurrent, Activations) {
  for (const char* name : {"hard_sigmoid", "sigmoid", "softsign", "tanh"}) {
    const AttributeMap attributes = {
        {"activations", Strings{name}}, {"alpha", std::vector<double>{0.25}}, {"beta", std::vector<double>{0.5}}};
    ExpectTheReference(Layer("rnn", {4, 2, 3, 9, 1}, true, attributes), name);
  }
}

TEST(Int8Recurrent, OneScaleForAllRows) {
  kernels::OpCall call = Layer("lstm", {3, 2, 5, 9, 1}, true);
  for (const int i : {1, 2}) {
    TensorType type = call.operands[i]->type();
    type.quant = PerTensor(0.002f);
    call.operands[i]->set_type(type);
  }
  ExpectTheReference(call, "per tensor");
}

// Codes of seven bits, of which AVX2 adds two products in 16 bits.
TEST(Int8Recurrent, WeightsWhosePairsFit) {
  for (const char* op : {"gru", "lstm"}) {
    kernels::OpCall call = Layer(op, {3, 2, 24, 40, 1}, false);
    for (const int i : {1, 2}) {
      for (int64_t k = 0; k < call.operands[i]->num_elements(); ++k) call.operands[i]->data<int8_t>()[k] /= 2;
    }
    ExpectTheReference(call, op);
  }
}

// Rows of a weight are packed once, whatever the number of sequences; other rows are another's.
TEST(Int8Recurrent, SharesWhatItPacks) {
  kernels::PackedWeights weights;
  const auto create = [&](const kernels::OpCall& call, const std::vector<std::shared_ptr<const Tensor>>& shared) {
    kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    desc.weights = &weights;
    desc.parameters["weight"] = shared[0];
    desc.parameters["recurrent_weight"] = shared[1];
    return Create(desc).value();
  };
  for (const auto& [op, products] : {std::make_pair("lstm", 2), {"gru", 3}}) {
    const kernels::OpCall one = Layer(op, {4, 1, 8, 16, 2}, false), two = Layer(op, {4, 2, 8, 16, 2}, false);
    const std::vector<std::shared_ptr<const Tensor>> shared = {std::make_shared<const Tensor>(*one.operands[1]),
                                                               std::make_shared<const Tensor>(*one.operands[2])};
    const int64_t before = weights.packings();
    const auto first = create(one, shared);
    const int64_t packings = weights.packings() - before;
    EXPECT_EQ(packings, 2 * 2 * products) << op;  // In each direction, codes and their sums.
    const auto second = create(two, shared);
    EXPECT_EQ(weights.packings() - before, packings) << op;
    ASSERT_EQ(first->packed().size(), second->packed().size());
    for (size_t i = 0; i < first->packed().size(); ++i) EXPECT_EQ(first->packed()[i], second->packed()[i]) << op;
  }
}

TEST(Int8Recurrent, SaysWhatItDeclines) {
  const auto message = [](auto edit) {
    const kernels::OpCall call = Layer("lstm", {4, 2, 3, 5, 1}, true);
    kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    edit(desc);
    const auto created = Create(desc);
    EXPECT_EQ(Kernels().FindOrNull("int8.lstm")->Supports(desc).status(), created.status());
    return std::string(created.status().message());
  };
  EXPECT_THAT(message([](kernels::KernelDesc& d) { d.parameters.erase("weight"); }), HasSubstr("wanted an input and"));
  EXPECT_THAT(message([](kernels::KernelDesc& d) { d.inputs[0]->quant.reset(); }), HasSubstr("input"));
  const Tensor floats(DType::kF32, {1, 20, 5});
  EXPECT_THAT(message([&](kernels::KernelDesc& d) { d.parameters["recurrent_weight"] = &floats; }),
              HasSubstr("recurrent_weight is f32[1,20,5], wanted i8"));
  EXPECT_THAT(message([](kernels::KernelDesc& d) { d.inputs[0]->quant->scales[0] = 1e-38f; }),
              HasSubstr("wanted a normal float"));
}

TEST(Int8Recurrent, ALengthBeyondTheStepsIsAnError) {
  kernels::OpCall call = Layer("rnn", {4, 2, 3, 5, 1}, true);
  call.operands[4] = Tensor::Of<int32_t>({2}, {4, 5});
  const kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  EXPECT_EQ(RunCall(*Kernels().FindOrNull("int8.rnn"), call, desc).status().message(),
            "sequence_lens: found 5, wanted values in [0, 4]");
}

}  // namespace
}  // namespace fuselage::int8::recurrent
