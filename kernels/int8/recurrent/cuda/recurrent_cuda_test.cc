#include "kernels/int8/recurrent/cuda/recurrent_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/recurrent/recurrent.h"
#include "kernels/int8/recurrent/recurrent_cases.h"

namespace fuselage::int8::recurrent::cuda {
namespace {

using ::fuselage::cuda::CreateRegistered;
using ::fuselage::cuda::ExpectBytesOf;
using kernels::KernelDesc;
using kernels::OpCall;
using RecurrentCuda = ::fuselage::cuda::CudaTest;

TEST_F(RecurrentCuda, HasTheBytesOfTheCpu) {
  for (const Case& c : Cases()) {
    ExpectBytesOf(recurrent::Register, RegisterCuda, c.call);
    if (HasFatalFailure()) FAIL() << c.name;
  }
}

// Around a block's 8 units and 16 sequences, and what its warps multiply at once: 64 codes each, 512 in all.
TEST_F(RecurrentCuda, BlocksThatAreNotFull) {
  for (const char* op : {"rnn", "gru", "lstm"}) {
    for (const int64_t units : {8, 15, 17, 63, 64, 66, 511, 512, 513, 1030}) {
      ExpectBytesOf(recurrent::Register, RegisterCuda, Layer(op, {3, 2, 4, units, 1}, true));
      if (HasFatalFailure()) FAIL() << op << " of " << units << " units";
    }
    for (const int64_t sequences : {8, 9, 15, 16, 17, 33}) {
      ExpectBytesOf(recurrent::Register, RegisterCuda, Layer(op, {3, sequences, 4, 12, 2}, true));
      if (HasFatalFailure()) FAIL() << op << " of " << sequences << " sequences";
    }
  }
}

// States and weights at their ends.
TEST_F(RecurrentCuda, ExtremeCodes) {
  for (const float h : {-2.0f, 2.0f}) {
    for (const int weight : {-128, 127}) {
      OpCall call = Layer("lstm", {2, 3, 5, 700, 1}, true);
      std::fill_n(call.operands[5]->data<float>(), call.operands[5]->num_elements(), h);
      std::memset(call.operands[2]->raw_data(), weight, call.operands[2]->byte_size());
      ExpectBytesOf(recurrent::Register, RegisterCuda, call);
    }
  }
}

// Where the CPU's kernel has an error, a sequence's results are NaN, and the others' what they were.
TEST_F(RecurrentCuda, ALengthBeyondTheStepsGivesNaN) {
  for (const char* op : {"rnn", "gru", "lstm"}) {
    OpCall call = Layer(op, {4, 3, 5, 9, 2}, true);
    const auto run = [&](int32_t second, int32_t third) {
      call.operands[4] = Tensor::Of<int32_t>({3}, {4, second, third});
      const KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
      std::vector<const Tensor*> inputs = {&*call.operands[0]};
      for (size_t i = 4; i < std::min<size_t>(call.operands.size(), 7); ++i) inputs.push_back(&*call.operands[i]);
      const auto results = ::fuselage::cuda::RunCudaKernel(**CreateRegistered(RegisterCuda, desc), desc, inputs);
      EXPECT_TRUE(results.ok()) << results.status();
      std::vector<float> floats;
      for (const auto& bytes : *results) {
        const size_t size = floats.size();
        floats.resize(size + bytes.size() / sizeof(float));
        std::memcpy(floats.data() + size, bytes.data(), bytes.size());
      }
      return floats;
    };
    const std::vector<float> fine = run(0, 0), wrong = run(5, -1);
    for (size_t i = 0; i < wrong.size(); ++i) {
      if (i / 9 % 3 == 0) {
        EXPECT_EQ(wrong[i], fine[i]) << op << " " << i;
      } else {
        EXPECT_TRUE(std::isnan(wrong[i])) << op << " " << i;
      }
    }
  }
}

TEST_F(RecurrentCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(recurrent::Register, RegisterCuda);
  const OpCall call = Layer("lstm", {4, 2, 3, 5, 1}, true);
  const Tensor floats(DType::kF32, {1, 20, 5});
  const auto expect_same_error = [&](auto edit) {
    KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    edit(desc);
    const absl::Status status = recurrent::Create(desc).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(CreateRegistered(RegisterCuda, desc).status(), status);
  };
  expect_same_error([](KernelDesc& desc) { desc.parameters.erase("weight"); });
  expect_same_error([&](KernelDesc& desc) { desc.parameters["recurrent_weight"] = &floats; });
  expect_same_error([](KernelDesc& desc) { desc.inputs[0]->quant.reset(); });
  expect_same_error([](KernelDesc& desc) { desc.inputs[0]->quant->scales[0] = 1e-38f; });
}

}  // namespace
}  // namespace fuselage::int8::recurrent::cuda
