// Sessions for any batch, and what sessions share on a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "frontend/onnx/model_builder.h"
#include "ir/base/status.h"
#include "ir/testing/matchers.h"
#include "runtime/cuda/fake_kernels.h"

namespace fuselage {
namespace {

using onnx::Seeded;
using runtime::cuda::FakeApi;
using runtime::cuda::FakeBackend;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr int64_t kPositionBytes = 6 * 8 * 8;  // Codes.

// An image and another of its size, a position added to a convolution's result.
Model Quantized() {
  onnx::ModelBuilder model;
  model.Input("image", {"N", 3, 8, 8}).Input("other", {"N", 3, 8, 8});
  model.Initializer("w", Seeded({6, 3, 3, 3}, 1)).Initializer("position", Seeded({1, 6, 8, 8}, 2));
  model.Initializer("v", Seeded({5, 6}, 3));
  model.Node("Add", {"image", "other"}, {"both"}, "both");
  model.Node("Conv", {"both", "w"}, {"c"}, "conv").Ints("pads", {1, 1, 1, 1});
  model.Node("Add", {"c", "position"}, {"p"}, "add").Node("Relu", {"p"}, {"r"}, "relu");
  model.Node("GlobalAveragePool", {"r"}, {"g"}, "gap").Node("Flatten", {"g"}, {"f"}, "flatten");
  model.Node("Gemm", {"f", "v"}, {"logits"}, "fc").Int("transB", 1).Output("logits");
  const std::string path = ::testing::TempDir() + "/any_batch.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  return *Compile(*Load(path), {{"image", Seeded({8, 3, 8, 8}, 4)}, {"other", Seeded({8, 3, 8, 8}, 5)}});
}

class AnyBatchTest : public ::testing::Test {
 protected:
  SessionOptions On(const std::string& device, int64_t batch) {
    SessionOptions options;
    options.device = device;
    options.cuda = backend_.get();
    options.batch = batch;
    return options;
  }

  static absl::StatusOr<Tensor> Run(Session& session, int64_t images, int64_t others) {
    Tensor logits;
    const Tensor image = Seeded({images, 3, 8, 8}, images), other = Seeded({others, 3, 8, 8}, others + 100);
    RETURN_IF_ERROR(session.Run({{"image", image}, {"other", other}}, {{"logits", &logits}}));
    return logits;
  }
  static absl::StatusOr<Tensor> Run(Session& session, int64_t batch) { return Run(session, batch, batch); }

  // What a session for this batch gives.
  Tensor Wanted(const std::string& device, int64_t batch) {
    absl::StatusOr<Session> session = Prepare(model_, On(device, batch));
    return *Run(*session, batch);
  }

  FakeApi api_;
  std::unique_ptr<FakeBackend> backend_ = *FakeBackend::Open(&api_);
  Model model_ = Quantized();
};

TEST_F(AnyBatchTest, HasTheBitsOfASessionForEach) {
  for (const char* device : {"cpu", "reference", "cuda"}) {
    ASSERT_OK_AND_ASSIGN(Session session, Prepare(model_, On(device, 0)));
    EXPECT_EQ(session.inputs()[0].type, model_.inputs()[0].type);
    EXPECT_EQ(session.outputs()[0].type.shape, Shape({1, 5}));
    EXPECT_EQ(session.activation_bytes(), 0) << "nothing is prepared before it is used";
    for (int64_t batch : {3, 1, 2, 7, 3, 5, 4, 1}) {
      ASSERT_OK_AND_ASSIGN(const Tensor logits, Run(session, batch));
      EXPECT_TRUE(logits.SameBytes(Wanted(device, batch))) << device << ", " << batch;
      ASSERT_OK_AND_ASSIGN(const std::vector<Value> outputs, session.OutputsAt(batch));
      EXPECT_EQ(outputs[0].name, "logits");
      EXPECT_EQ(outputs[0].type, logits.type());
      EXPECT_EQ(session.outputs()[0].type.shape, Shape({1, 5})) << "still one sample's";
    }
  }
}

TEST_F(AnyBatchTest, OutlivesItsModel) {
  absl::StatusOr<Session> session = Prepare(Quantized(), On("cpu", 0));
  ASSERT_OK_AND_ASSIGN(const Tensor logits, Run(*session, 3));
  EXPECT_TRUE(logits.SameBytes(Wanted("cpu", 3)));
}

TEST_F(AnyBatchTest, TheLastUsedStayPrepared) {
  for (const char* device : {"cpu", "cuda"}) {
    SessionOptions options = On(device, 0);
    options.kept_batches = 2;
    ASSERT_OK_AND_ASSIGN(Session session, Prepare(model_, options));
    const auto bytes = [&](int64_t batch) { return Prepare(model_, On(device, batch))->activation_bytes(); };
    for (int64_t batch : {1, 2, 1, 3}) ASSERT_THAT(Run(session, batch), IsOk());
    EXPECT_EQ(session.activation_bytes(), bytes(1) + bytes(3)) << device;
  }
}

// The fake kernels have their weights on the host; constants are on the device.
TEST_F(AnyBatchTest, SessionsShareWeightsOnADevice) {
  {
    std::vector<Session> sessions;
    int64_t activations = 0;
    for (int64_t batch : {1, 1, 4, 0, 0}) {
      ASSERT_OK_AND_ASSIGN(Session session, Prepare(model_, On("cuda", batch)));
      const std::vector<int64_t> sizes = batch == 0 ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{batch};
      for (int64_t size : sizes) ASSERT_THAT(Run(session, size), IsOk());
      EXPECT_GT(session.weight_bytes(), kPositionBytes) << "in full";
      activations += session.activation_bytes();
      sessions.push_back(std::move(session));
    }
    EXPECT_EQ(api_.device_bytes(), activations + kPositionBytes);
    sessions.erase(sessions.begin(), sessions.end() - 1);
    EXPECT_EQ(api_.device_bytes(), sessions[0].activation_bytes() + kPositionBytes);
    ASSERT_OK_AND_ASSIGN(const Tensor logits, Run(sessions[0], 2));
    EXPECT_TRUE(logits.SameBytes(Wanted("cuda", 2)));
  }
  EXPECT_EQ(api_.live_handles(), 0);
}

TEST_F(AnyBatchTest, ThreadsHaveSessionsOfTheirOwn) {
  for (const char* device : {"cpu", "cuda"}) {
    std::map<int64_t, Tensor> wanted;
    for (int64_t batch : {1, 2, 3, 4}) wanted[batch] = Wanted(device, batch);
    std::vector<int> wrong(3);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        SessionOptions options = On(device, 0);
        options.kept_batches = 2;
        absl::StatusOr<Session> session = Prepare(model_, options);
        for (int run = 0; run < 12; ++run) {
          const int64_t batch = 1 + (run * (i + 1)) % 4;
          const absl::StatusOr<Tensor> logits = Run(*session, batch);
          wrong[i] += !logits.ok() || !logits->SameBytes(wanted[batch]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(wrong, ::testing::Each(0)) << device;
  }
  EXPECT_EQ(api_.live_handles(), 0);
}

TEST_F(AnyBatchTest, InputsThatDisagreeAreNamed) {
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(model_, On("cpu", 0)));
  EXPECT_THAT(Run(session, 3, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input \"other\" is f32[2,3,8,8], wanted f32[3,3,8,8], with the batch of input "
                                 "\"image\"")));
  EXPECT_THAT(Run(session, 0, 0), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("input \"image\" is f32[0,3,8,8], wanted f32[1,3,8,8], or")));
  const Tensor image = Seeded({2, 3, 8, 8}, 1), scalar = Seeded({}, 1), wide = Seeded({2, 3, 8, 9}, 1);
  for (const Tensor& wrong : {scalar, wide}) {
    const std::string found = absl::StrCat(" is ", ToString(wrong.type()), ", wanted f32[");
    EXPECT_THAT(session.Run({{"image", wrong}, {"other", image}}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input \"image\"" + found)));
    EXPECT_THAT(session.Run({{"image", image}, {"other", wrong}}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input \"other\"" + found)));
  }
  EXPECT_EQ(session.activation_bytes(), 0) << "nothing was prepared for them";
  EXPECT_THAT(session.OutputsAt(0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wanted at least 1")));
  ASSERT_OK_AND_ASSIGN(Session three, Prepare(model_, On("cpu", 3)));
  EXPECT_THAT(three.OutputsAt(2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wanted 3, the session's")));
  EXPECT_THAT(three.OutputsAt(3), IsOk());
}

TEST_F(AnyBatchTest, ErrorsNameTheBatch) {
  for (const char* device : {"cpu", "cuda"}) {
    ASSERT_OK_AND_ASSIGN(const Session of_two, Prepare(model_, On(device, 2)));
    SessionOptions options = On(device, 0);
    options.max_memory_bytes = of_two.activation_bytes() + of_two.weight_bytes();
    ASSERT_OK_AND_ASSIGN(Session session, Prepare(model_, options));
    EXPECT_THAT(Run(session, 2), IsOk());
    EXPECT_THAT(Run(session, 40), StatusIs(absl::StatusCode::kResourceExhausted,
                                           AllOf(HasSubstr("with a batch of 40: "), HasSubstr("the limit is"))));
    EXPECT_THAT(Run(session, 2), IsOk());
    EXPECT_THAT(Run(session, 1), IsOk());
    EXPECT_LE(session.activation_bytes() + session.weight_bytes(), options.max_memory_bytes) << "of both together";
    options.batch = 40;
    EXPECT_THAT(Prepare(model_, options),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("with a batch of 40: ")));
  }
}

TEST_F(AnyBatchTest, ANetworkOfOneBatchHasThat) {
  onnx::ModelBuilder model;
  model.Input("x", {1, 3}).Initializer("more", Seeded({1, 2}, 1));
  model.Node("Concat", {"x", "more"}, {"y"}, "concat").Int("axis", 1).Output("y");
  const std::string path = ::testing::TempDir() + "/one_batch.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
  for (const char* device : {"cpu", "reference"}) {
    ASSERT_OK_AND_ASSIGN(Session session, Prepare(network, On(device, 0)));
    const Tensor one = Seeded({1, 3}, 1), two = Seeded({2, 3}, 1);
    EXPECT_THAT(session.Run({{"x", one}}, {}), IsOk());
    EXPECT_THAT(session.Run({{"x", two}}, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                        AllOf(HasSubstr("with a batch of 2: "), HasSubstr("%concat"))));
    EXPECT_THAT(session.Run({{"x", one}}, {}), IsOk());
  }
}

}  // namespace
}  // namespace fuselage
