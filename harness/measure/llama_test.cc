// The shipped language model on the King James text, by the library: its logits, its bits per byte, and those of INT8.
#include <cstdlib>
#include <memory>
#include <string>

#include "compiler/compiler.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "harness/datasets/text.h"
#include "ir/testing/matchers.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {
namespace {

constexpr int64_t kWindow = 256, kTestBytes = 400000, kBatch = 10, kWindows = 100;
// PyTorch's logits 0 to 7, in FP32 (models/README.md): of the first window's last position, and the second's first.
constexpr float kFirst[] = {-13.3442, -13.4242, -13.4761, -13.3682, -13.3360, -13.4359, -13.4006, -13.3273};
constexpr float kSecond[] = {-18.7530, -18.5799, -18.5588, -18.8421, -18.7003, -18.7698, -18.6173, -18.6354};

class LlamaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = ::testing::TempDir() + "/bible_kjv.txt";
    const std::string command = "bible -l80 gen1:1-rev22:21 </dev/null >" + path;
    if (std::system("command -v bible >/dev/null") != 0) {
      GTEST_SKIP() << "the program bible is missing: install Debian's package bible-kjv";
    }
    ASSERT_EQ(std::system(command.c_str()), 0);
    ASSERT_OK_AND_ASSIGN(const FileDigest digest, DigestFiles({path}));
    ASSERT_EQ(digest.sha256, "ba7c84a755b5ecc052222311dc2d785cd6cf9c0875ca26fc31de1138501496d5");
    ASSERT_OK_AND_ASSIGN(train_, datasets::OpenText(path, {kWindow, kTestBytes}, /*train=*/true));
    ASSERT_OK_AND_ASSIGN(test_, datasets::OpenText(path, {kWindow, kTestBytes}, /*train=*/false));
  }

  Tensor Tokens(const Model& model, const datasets::Dataset& dataset, int64_t first, int64_t count) {
    Tensor tokens(DType::kI64, {count, kWindow});
    EXPECT_OK((*dataset.Inputs(model.graph(), {}, &pool_))->Fill(first, first + count, &tokens));
    return tokens;
  }

  // The first test windows. Keeps the logits of the first two.
  void Judge(const Model& model, datasets::Judge* judge, const datasets::Judge* baseline, Tensor* first_logits) {
    SessionOptions options;
    options.batch = kBatch;
    options.pool = &pool_;
    ASSERT_OK_AND_ASSIGN(Session session, Prepare(model, options));
    for (int64_t first = 0; first < kWindows; first += kBatch) {
      Tensor logits;
      ASSERT_OK(session.Run({{"tokens", Tokens(model, *test_, first, kBatch)}}, {{"logits", &logits}}));
      ASSERT_OK(judge->Add(first, kBatch, logits, baseline));
      if (first == 0) *first_logits = logits;
    }
  }

  runtime::ThreadPool pool_{2};
  std::unique_ptr<datasets::Dataset> train_, test_;
};

TEST_F(LlamaTest, BitsPerByte) {
  ASSERT_OK_AND_ASSIGN(const Model model, Load("models/llama_kjv.onnx"));
  const auto fp32 = test_->MakeJudge(), int8 = test_->MakeJudge();
  Tensor logits;
  Judge(model, fp32.get(), fp32.get(), &logits);
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(logits.At((kWindow - 1) * 256 + i), kFirst[i], 1e-3) << i;
    EXPECT_NEAR(logits.At(kWindow * 256 + i), kSecond[i], 1e-3) << i;
  }
  Results::Variant of_fp32, of_int8;
  fp32->Record(&of_fp32);
  EXPECT_NEAR(of_fp32.bits_per_byte(), 1.7594, 1e-4);

  ASSERT_OK_AND_ASSIGN(const Model quantized, Compile(model, {{"tokens", Tokens(model, *train_, 0, 32)}}));
  Judge(quantized, int8.get(), fp32.get(), &logits);
  int8->Record(&of_int8);
  EXPECT_LE(of_int8.bits_per_byte(), 1.02 * of_fp32.bits_per_byte());
  EXPECT_LE(of_int8.kl_divergence_bits(), 0.03);
}

}  // namespace
}  // namespace fuselage::harness
