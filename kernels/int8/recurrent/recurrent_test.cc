// Against the reference evaluation, bit for bit, on all instruction sets.
#include "kernels/int8/recurrent/recurrent.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/recurrent/recurrent_cases.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::recurrent {
namespace {

using ::testing::HasSubstr;

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    return created;
  }();
  return *registry;
}

void ExpectTheReference(const kernels::OpCall& call, const std::string& what) {
  EXPECT_EQ(DifferenceFromReference(Kernels(), call), "") << what;
}

TEST(Int8Recurrent, HasTheReferencesBits) {
  for (const Case& c : Cases()) ExpectTheReference(c.call, c.name);
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
