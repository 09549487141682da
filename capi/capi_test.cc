#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "capi/fuselage.h"
#include "compiler/compiler.h"
#include "frontend/onnx/model_builder.h"

namespace {

using fuselage::DType;
using fuselage::Tensor;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor Seeded(fuselage::Shape shape, uint64_t seed) {
  return fuselage::SeededTensor({DType::kF32, std::move(shape), std::nullopt, fuselage::Layout::kRowMajor}, seed);
}

// An image and a scale for its features in, logits and features out.
std::string NetworkFile() {
  fuselage::onnx::ModelBuilder model;
  model.Input("image", {"N", 3, 8, 8}).Input("scale", {"N", 4});
  model.Initializer("w", Seeded({4, 3, 3, 3}, 1)).Initializer("v", Seeded({5, 4}, 2));
  model.Node("Conv", {"image", "w"}, {"c"}, "conv").Ints("pads", {1, 1, 1, 1});
  model.Node("GlobalAveragePool", {"c"}, {"g"}, "gap");
  model.Node("Flatten", {"g"}, {"features"}, "flatten");
  model.Node("Mul", {"features", "scale"}, {"m"}, "mul");
  model.Node("Gemm", {"m", "v"}, {"logits"}, "fc").Int("transB", 1);
  model.Output("logits").Output("features");
  const std::string path = ::testing::TempDir() + "/network.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  return path;
}

fuselage_tensor View(const char* name, Tensor& tensor) {
  return {name, static_cast<fuselage_dtype>(tensor.dtype()), tensor.rank(), tensor.shape().data(), tensor.raw_data()};
}

// The message, after the code; empty: it succeeded.
std::string Text(fuselage_status* status) {
  if (status == nullptr) return "";
  const std::string text = std::to_string(fuselage_status_code(status)) + ": " + fuselage_status_message(status);
  fuselage_status_free(status);
  return text;
}

class CApiTest : public ::testing::Test {
 protected:
  CApiTest() {
    EXPECT_EQ(Text(fuselage_load(NetworkFile().c_str(), &network_)), "");
    const fuselage_tensor samples[] = {View("scale", scale_samples_), View("image", image_samples_)};
    EXPECT_EQ(Text(fuselage_compile(network_, samples, 2, nullptr, &int8_)), "");
  }
  ~CApiTest() override {
    fuselage_model_free(int8_);
    fuselage_model_free(network_);
  }

  fuselage_session* Session(const fuselage_session_options* options = nullptr) {
    fuselage_session* session = nullptr;
    EXPECT_EQ(Text(fuselage_prepare(int8_, options, &session)), "");
    return session;
  }

  Tensor image_samples_ = Seeded({8, 3, 8, 8}, 3), scale_samples_ = Seeded({8, 4}, 4);
  Tensor image_ = Seeded({1, 3, 8, 8}, 7), scale_ = Seeded({1, 4}, 8);
  Tensor logits_ = Seeded({1, 5}, 9), features_ = Seeded({1, 4}, 10);
  fuselage_model *network_ = nullptr, *int8_ = nullptr;
};

TEST_F(CApiTest, HasTheBitsOfTheCompiler) {
  const auto network = fuselage::Load(NetworkFile());
  const auto int8 = fuselage::Compile(*network, {{"image", image_samples_}, {"scale", scale_samples_}});
  ASSERT_TRUE(int8.ok()) << int8.status();
  auto wanted = fuselage::Prepare(*int8);
  Tensor logits, features;
  ASSERT_TRUE(wanted->Run({{"image", image_}, {"scale", scale_}}, {{"logits", &logits}, {"features", &features}}).ok());

  fuselage_session* session = Session();
  const fuselage_tensor inputs[] = {View("image", image_), View("scale", scale_)};
  const fuselage_tensor outputs[] = {View("features", features_), View("logits", logits_)};
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(Text(fuselage_run(session, inputs, 2, outputs, 2)), "");
    EXPECT_TRUE(logits_.SameBytes(logits));
    EXPECT_TRUE(features_.SameBytes(features));
  }
  // Only what is asked for.
  logits_ = Seeded({1, 5}, 11);
  const fuselage_tensor one = View("logits", logits_);
  ASSERT_EQ(Text(fuselage_run(session, inputs, 2, &one, 1)), "");
  EXPECT_TRUE(logits_.SameBytes(logits));
  fuselage_session_free(session);
}

TEST_F(CApiTest, WhatIsSavedHasTheSameBits) {
  const std::string path = ::testing::TempDir() + "/network.fuse";
  const fuselage_save_options kEach[] = {
      {sizeof(fuselage_save_options), nullptr}, {sizeof(fuselage_save_options), "scalar"}, {sizeof(size_t), nullptr}};
  const fuselage_tensor inputs[] = {View("image", image_), View("scale", scale_)};
  fuselage_session* session = Session();
  Tensor wanted = logits_;
  const fuselage_tensor to = View("logits", wanted);
  ASSERT_EQ(Text(fuselage_run(session, inputs, 2, &to, 1)), "");
  fuselage_session_free(session);
  for (const fuselage_save_options& options : kEach) {
    ASSERT_EQ(Text(fuselage_save(int8_, path.c_str(), &options)), "");
    fuselage_model_free(int8_);
    ASSERT_EQ(Text(fuselage_load(path.c_str(), &int8_)), "");
    session = Session();
    const fuselage_tensor output = View("logits", logits_);
    ASSERT_EQ(Text(fuselage_run(session, inputs, 2, &output, 1)), "");
    EXPECT_TRUE(logits_.SameBytes(wanted));
    fuselage_session_free(session);
  }
  const fuselage_save_options unknown = {sizeof(unknown), "avx2,sse9"};
  EXPECT_THAT(Text(fuselage_save(int8_, path.c_str(), &unknown)), HasSubstr("sse9"));
  EXPECT_THAT(Text(fuselage_save(int8_, "/none/network.fuse", nullptr)), HasSubstr("14: /none/network.fuse"));
}

TEST_F(CApiTest, ModelsSayWhatWasDoneToThem) {
  const auto texts = [](auto function, const fuselage_model* model) {
    int32_t count;
    const char* const* found = function(model, &count);
    return std::vector<std::string>(found, found + count);
  };
  EXPECT_THAT(texts(fuselage_model_remarks, network_), IsEmpty());
  EXPECT_THAT(texts(fuselage_model_remarks, int8_), Contains(HasSubstr("quantize: applied: %")));
  EXPECT_THAT(texts(fuselage_model_warnings, int8_), IsEmpty());
  const std::string path = ::testing::TempDir() + "/remarks.fuse";
  const fuselage_save_options options = {sizeof(options), "scalar"};
  ASSERT_EQ(Text(fuselage_save(int8_, path.c_str(), &options)), "");
  fuselage_model* loaded;
  ASSERT_EQ(Text(fuselage_load(path.c_str(), &loaded)), "");
  EXPECT_EQ(texts(fuselage_model_remarks, loaded), texts(fuselage_model_remarks, int8_));
  if (fuselage::kernels::BestIsa() != fuselage::kernels::Isa::kScalar) {
    EXPECT_THAT(texts(fuselage_model_warnings, loaded), ElementsAre(HasSubstr("packed for scalar")));
  }
  fuselage_model_free(loaded);
}

// Tensors may lie at any address, in each other too; those whose elements are aligned are not copied.
TEST_F(CApiTest, TensorsMayLieAnywhere) {
  fuselage_session* session = Session();
  const fuselage_tensor scale = View("scale", scale_);
  fuselage_tensor image = View("image", image_), logits = View("logits", logits_);
  ASSERT_EQ(Text(fuselage_run(session, std::vector{image, scale}.data(), 2, &logits, 1)), "");
  const Tensor wanted = logits_;
  const size_t bytes = image_.byte_size();
  std::vector<char> memory(bytes + 256);
  for (const size_t offset : {0, 1, 2, 4, 12, 60}) {
    std::memcpy(&memory[offset], image_.raw_data(), bytes);
    image.data = &memory[offset];
    for (const size_t at : {bytes + offset + 64, bytes + offset + 65, offset, offset + 4}) {
      logits.data = &memory[at];
      std::memcpy(&memory[offset], image_.raw_data(), bytes);
      ASSERT_EQ(Text(fuselage_run(session, std::vector{image, scale}.data(), 2, &logits, 1)), "");
      EXPECT_EQ(std::memcmp(logits.data, wanted.raw_data(), wanted.byte_size()), 0) << offset << ", " << at;
    }
  }
  fuselage_session_free(session);
}

TEST_F(CApiTest, SaysWhatItReadsAndWrites) {
  int32_t count = 0;
  const fuselage_tensor* inputs = fuselage_model_inputs(network_, &count);
  ASSERT_EQ(count, 2);
  EXPECT_STREQ(inputs[0].name, "image");
  EXPECT_EQ(inputs[0].dtype, FUSELAGE_F32);
  EXPECT_EQ(std::vector<int64_t>(inputs[0].shape, inputs[0].shape + inputs[0].rank),
            (std::vector<int64_t>{1, 3, 8, 8}));
  EXPECT_EQ(inputs[0].data, nullptr);
  EXPECT_STREQ(fuselage_model_outputs(int8_, &count)[1].name, "features");
  EXPECT_EQ(count, 2);

  fuselage_session_options options = {};
  options.size = sizeof(options);
  options.batch = 3;
  fuselage_session* session = Session(&options);
  EXPECT_EQ(fuselage_session_inputs(session, &count)[1].shape[0], 3);
  EXPECT_EQ(fuselage_session_outputs(session, &count)[0].shape[0], 3);
  fuselage_session_free(session);
  EXPECT_STREQ(fuselage_version(), FUSELAGE_VERSION);
}

TEST_F(CApiTest, SessionsForAnyBatch) {
  fuselage_session_options options = {};
  options.size = sizeof(options);
  options.batch = FUSELAGE_ANY_BATCH;
  options.kept_batches = 2;
  fuselage_session* session = Session(&options);
  int32_t count = 0;
  EXPECT_EQ(fuselage_session_inputs(session, &count)[0].shape[0], 1);
  for (const int64_t batch : {3, 1, 4, 2, 3}) {
    Tensor image = Seeded({batch, 3, 8, 8}, 1), scale = Seeded({batch, 4}, 2), logits = Seeded({batch, 5}, 3);
    Tensor wanted = logits, large = Seeded({batch + 1, 5}, 3);
    const fuselage_tensor inputs[] = {View("image", image), View("scale", scale)};
    const fuselage_tensor outputs[] = {View("logits", logits), View("logits", wanted), View("logits", large)};
    ASSERT_EQ(Text(fuselage_run(session, inputs, 2, &outputs[0], 1)), "");
    fuselage_session_options fixed = {};
    fixed.size = offsetof(fuselage_session_options, kept_batches);  // Of a caller with an older header.
    fixed.batch = batch;
    fuselage_session* other = Session(&fixed);
    ASSERT_EQ(Text(fuselage_run(other, inputs, 2, &outputs[1], 1)), "");
    EXPECT_TRUE(logits.SameBytes(wanted)) << batch;
    const Tensor before = large;
    EXPECT_THAT(Text(fuselage_run(session, inputs, 2, &outputs[2], 1)), HasSubstr("output \"logits\" is f32["));
    EXPECT_TRUE(large.SameBytes(before));
    const fuselage_tensor* at = nullptr;
    ASSERT_EQ(Text(fuselage_session_outputs_at(session, batch, &count, &at)), "");
    EXPECT_EQ(count, 2);
    EXPECT_STREQ(at[0].name, "logits");
    EXPECT_EQ(std::vector<int64_t>(at[0].shape, at[0].shape + at[0].rank), (std::vector<int64_t>{batch, 5}));
    EXPECT_THAT(Text(fuselage_session_outputs_at(other, batch + 1, &count, &at)), HasSubstr("the session's"));
    fuselage_session_free(other);
    EXPECT_THAT(Text(fuselage_run(session, std::vector{inputs[0], View("scale", wanted)}.data(), 2, nullptr, 0)),
                HasSubstr("3: input \"scale\" is "));
  }
  fuselage_session_free(session);
  session = nullptr;
  options.batch = -2;
  EXPECT_THAT(Text(fuselage_prepare(int8_, &options, &session)), HasSubstr("batch is -2"));
}

TEST_F(CApiTest, SessionsRunAtOnceAndOutliveTheModel) {
  fuselage_session* sessions[] = {Session(), Session()};
  fuselage_model_free(int8_);
  int8_ = nullptr;
  const fuselage_tensor inputs[] = {View("image", image_), View("scale", scale_)};
  Tensor logits[] = {Seeded({1, 5}, 1), Seeded({1, 5}, 2)};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      const fuselage_tensor output = View("logits", logits[i]);
      for (int run = 0; run < 20; ++run) EXPECT_EQ(Text(fuselage_run(sessions[i], inputs, 2, &output, 1)), "");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(logits[0].SameBytes(logits[1]));
  for (fuselage_session* session : sessions) fuselage_session_free(session);
}

TEST_F(CApiTest, RunSaysWhatIsWrong) {
  fuselage_session* session = Session();
  const fuselage_tensor image = View("image", image_), scale = View("scale", scale_), logits = View("logits", logits_);
  const Tensor before = logits_;
  const auto run = [&](std::vector<fuselage_tensor> inputs, std::vector<fuselage_tensor> outputs) {
    return Text(fuselage_run(session, inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                             static_cast<int32_t>(outputs.size())));
  };
  EXPECT_THAT(run({image}, {logits}), HasSubstr("3: found no input \"scale\""));
  EXPECT_THAT(run({image, scale, scale}, {logits}), HasSubstr("inputs: \"scale\" is there twice"));
  Tensor wide = Seeded({2, 4}, 1);
  EXPECT_THAT(run({image, View("scale", wide)}, {logits}), HasSubstr("wanted f32[1,4]"));
  EXPECT_THAT(run({image, scale}, {View("logits", wide)}), HasSubstr("output \"logits\" is f32[2,4], wanted f32[1,5]"));
  EXPECT_THAT(run({image, scale, View("more", wide)}, {logits}), HasSubstr("5: found the input \"more\""));
  EXPECT_THAT(run({image, scale}, {View("more", wide)}), HasSubstr("5: found the output \"more\""));
  fuselage_tensor broken = scale;
  broken.data = nullptr;
  EXPECT_THAT(run({image, broken}, {logits}), HasSubstr("tensor \"scale\": data is NULL"));
  broken = scale;
  broken.dtype = static_cast<fuselage_dtype>(77);
  EXPECT_THAT(run({image, broken}, {logits}), HasSubstr("dtype is 77"));
  broken = scale;
  broken.name = nullptr;
  EXPECT_THAT(run({image, broken}, {logits}), HasSubstr("number 1 has no name"));
  const int64_t negative[] = {1, -4};
  broken = scale;
  broken.shape = negative;
  EXPECT_THAT(run({image, broken}, {logits}), HasSubstr("tensor \"scale\":"));
  EXPECT_TRUE(logits_.SameBytes(before));
  EXPECT_EQ(run({image, scale}, {logits}), "");
  fuselage_session_free(session);
}

// Of an input x: f32[?,?,2], rate: i64[] and y = x * rate, whose relu is the output.
std::string OpenNetworkFile() {
  fuselage::onnx::ModelBuilder model;
  model.Input("x", {"N", "T", 2}).Input("rate", {}, DType::kI64).Node("Cast", {"rate"}, {"r"}).Int("to", 1);
  model.Node("Mul", {"x", "r"}, {"y"}).Node("Relu", {"y"}, {"z"}).Output("z");
  const std::string path = ::testing::TempDir() + "/open.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  return path;
}

TEST(CApiLoadTest, ShapesConstantsAndOutputs) {
  const std::string path = OpenNetworkFile();
  const int64_t dims[] = {1, 3, 2};
  const fuselage_tensor x = {"x", FUSELAGE_BOOL, 3, dims, nullptr};
  auto rate = std::make_unique<Tensor>(Tensor::Scalar<int64_t>(-3));
  fuselage_tensor constant = View("rate", *rate);
  const char* y = "y";
  fuselage_load_options options = {};
  options.size = sizeof(options);
  options.shapes = &x, options.num_shapes = 1;
  options.constants = &constant, options.num_constants = 1;
  options.outputs = &y, options.num_outputs = 1;
  fuselage_model* model = nullptr;
  ASSERT_EQ(Text(fuselage_load_with(path.c_str(), &options, &model)), "");
  rate.reset();
  int32_t count = 0;
  EXPECT_STREQ(fuselage_model_outputs(model, &count)[0].name, "y");
  const fuselage_tensor* inputs = fuselage_model_inputs(model, &count);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(std::vector<int64_t>(inputs[0].shape, inputs[0].shape + inputs[0].rank), (std::vector<int64_t>{1, 3, 2}));
  fuselage_session* session = nullptr;
  ASSERT_EQ(Text(fuselage_prepare(model, nullptr, &session)), "");
  Tensor given = Tensor::Of<float>({1, 3, 2}, {1, -2, 3, 4, 5, 6}), found = Seeded({1, 3, 2}, 1);
  const fuselage_tensor input = View("x", given), output = View("y", found);
  ASSERT_EQ(Text(fuselage_run(session, &input, 1, &output, 1)), "");
  EXPECT_TRUE(found.SameBytes(Tensor::Of<float>({1, 3, 2}, {-3, 6, -9, -12, -15, -18})));
  fuselage_session_free(session);
  fuselage_model_free(model);
  model = nullptr;

  const auto error = [&] { return Text(fuselage_load_with(path.c_str(), &options, &model)); };
  options.num_shapes = 0;
  EXPECT_THAT(error(), AllOf(HasSubstr("3: "), HasSubstr("open.onnx"), HasSubstr("x:1,<T>,2")));
  options.num_shapes = -1;
  EXPECT_EQ(error(), "3: the number of shapes is -1");
  options.num_shapes = 1;
  options.num_outputs = -1;
  EXPECT_EQ(error(), "3: the number of outputs is -1");
  options.num_outputs = 1;
  y = nullptr;
  EXPECT_EQ(error(), "3: outputs: number 0 is NULL");
  y = "w";
  EXPECT_THAT(error(), HasSubstr("w"));
  options.num_outputs = 0;
  constant.data = nullptr;
  EXPECT_EQ(error(), "3: tensor \"rate\": data is NULL");
  float half = 0.5f;
  constant.dtype = FUSELAGE_F32;
  constant.data = &half;
  EXPECT_THAT(error(), HasSubstr("input 'rate': found the value 0.5, wanted one of type i64"));
  constant.name = "x";
  EXPECT_THAT(error(), HasSubstr("found a shape of 'x', wanted one of the inputs 'rate'"));
  const std::string compiled = ::testing::TempDir() + "/load.fuse";
  constant.name = "rate";
  half = 2;
  ASSERT_EQ(error(), "");
  ASSERT_EQ(Text(fuselage_save(model, compiled.c_str(), nullptr)), "");
  fuselage_model_free(model);
  EXPECT_THAT(Text(fuselage_load_with(compiled.c_str(), &options, &model)), HasSubstr("shapes are for .onnx files"));
}

TEST(CApiLoadTest, NetworksOfBytes) {
  fuselage::onnx::ModelBuilder builder;
  builder.Input("x", {"N", 2, 1, 2}).Node("Relu", {"x"}, {"y"}).Output("y");
  const std::string path = ::testing::TempDir() + "/bytes.onnx";
  std::ofstream(path, std::ios::binary) << builder.Bytes();
  const float mean[] = {0, 0.2f}, std = 0.5f;
  fuselage_load_options options = {};
  options.size = sizeof(options);
  options.image = FUSELAGE_PIXELS;
  options.mean = mean, options.num_mean = 2;
  options.std = &std, options.num_std = 1;
  fuselage_model* model = nullptr;
  ASSERT_EQ(Text(fuselage_load_with(path.c_str(), &options, &model)), "");
  int32_t count = 0;
  const fuselage_tensor* input = fuselage_model_inputs(model, &count);
  EXPECT_EQ(input->dtype, FUSELAGE_U8);
  EXPECT_EQ(std::vector<int64_t>(input->shape, input->shape + input->rank), (std::vector<int64_t>{1, 1, 2, 2}));
  fuselage_session* session = nullptr;
  ASSERT_EQ(Text(fuselage_prepare(model, nullptr, &session)), "");
  const std::string saved = ::testing::TempDir() + "/bytes.fuse";
  ASSERT_EQ(Text(fuselage_save(model, saved.c_str(), nullptr)), "");
  fuselage_model* again = nullptr;
  EXPECT_THAT(Text(fuselage_load_with(saved.c_str(), &options, &again)), HasSubstr("input stays as it is"));
  Tensor pixels = Tensor::Of<uint8_t>({1, 1, 2, 2}, {0, 102, 255, 51}), found = Seeded({1, 2, 1, 2}, 1);
  const fuselage_tensor given = View("x", pixels), output = View("y", found);
  ASSERT_EQ(Text(fuselage_run(session, &given, 1, &output, 1)), "");
  EXPECT_THAT(found.values<float>(), ElementsAre(0, 2, FloatEq((102 / 255.0f - 0.2f) / 0.5f), 0));
  fuselage_session_free(session);
  fuselage_model_free(model);

  const auto error = [&] { return Text(fuselage_load_with(path.c_str(), &options, &model)); };
  options.num_std = -1;
  EXPECT_EQ(error(), "3: the number of values of std is -1");
  options.num_std = 1, options.std = nullptr;
  EXPECT_EQ(error(), "3: std is NULL");
  options.num_std = 0, options.num_mean = 3;
  const float three[] = {0, 0, 0};
  options.mean = three;
  EXPECT_THAT(error(), HasSubstr("mean has 3 values, want 1 or one for each of 2 channels"));
  options.image = FUSELAGE_FLOATS;
  EXPECT_EQ(error(), "3: mean and std are for bytes: image is FUSELAGE_FLOATS");
  options.image = static_cast<fuselage_image>(3);
  EXPECT_EQ(error(), "3: image is 3, want a fuselage_image");
  options = {};
  options.size = sizeof(options);
  options.max_memory_bytes = 1;
  EXPECT_THAT(error(), HasSubstr("8: "));
  options.max_memory_bytes = -1;
  EXPECT_EQ(error(), "3: max_memory_bytes is -1, want 0 or more");
}

TEST(CApiLoadTest, WeightsThatAreNotFinite) {
  fuselage::onnx::ModelBuilder builder;
  builder.Input("x", {"N", 2}).Initializer("w", Tensor::Of<float>({2}, {1, HUGE_VALF}));
  builder.Node("Mul", {"x", "w"}, {"y"}).Output("y");
  const std::string path = ::testing::TempDir() + "/infinite.onnx";
  std::ofstream(path, std::ios::binary) << builder.Bytes();
  fuselage_load_options options = {};
  options.size = sizeof(options);
  fuselage_model* model = nullptr;
  EXPECT_THAT(Text(fuselage_load_with(path.c_str(), &options, &model)), HasSubstr("(allow_nonfinite accepts them)"));
  options.allow_nonfinite = 1;
  ASSERT_EQ(Text(fuselage_load_with(path.c_str(), &options, &model)), "");
  fuselage_model_free(model);
}

TEST_F(CApiTest, OptionsSayWhatIsWrong) {
  fuselage_model* model = nullptr;
  EXPECT_THAT(Text(fuselage_load("missing.onnx", &model)), HasSubstr("missing.onnx"));
  const fuselage_tensor samples[] = {View("image", image_samples_), View("scale", scale_samples_)};
  fuselage_compile_options compile = {};
  compile.size = sizeof(compile);
  compile.pipeline = "steps {\n  pass { } oops: 1\n}";
  EXPECT_THAT(Text(fuselage_compile(network_, samples, 2, &compile, &model)), HasSubstr("3: options.pipeline:2:"));
  compile.pipeline = "steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }";
  compile.threads = -1;
  EXPECT_THAT(Text(fuselage_compile(network_, samples, 2, &compile, &model)), HasSubstr("threads is -1"));
  EXPECT_EQ(model, nullptr);
  compile.threads = 0;
  ASSERT_EQ(Text(fuselage_compile(network_, samples, 2, &compile, &model)), "");
  fuselage_model_free(model);

  fuselage_session* session = nullptr;
  struct {
    fuselage_session_options options;
    int64_t newer;
  } given = {};
  given.options.size = sizeof(given);
  EXPECT_EQ(Text(fuselage_prepare(int8_, &given.options, &session)), "");  // It asks for nothing newer.
  fuselage_session_free(session);
  session = nullptr;
  given.newer = 1;
  EXPECT_THAT(Text(fuselage_prepare(int8_, &given.options, &session)), HasSubstr("12: an option at byte"));
  given.options.size = 0;
  EXPECT_THAT(Text(fuselage_prepare(int8_, &given.options, &session)), HasSubstr("options.size is 0"));
  given.options.size = sizeof(given.options);
  given.options.isa = "sse9";
  EXPECT_THAT(Text(fuselage_prepare(int8_, &given.options, &session)), HasSubstr("sse9"));
  given.options.isa = "scalar";
  given.options.max_memory_bytes = 1;
  EXPECT_THAT(Text(fuselage_prepare(int8_, &given.options, &session)), HasSubstr("8: "));
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(fuselage_status_code(nullptr), FUSELAGE_OK);
  EXPECT_STREQ(fuselage_status_message(nullptr), "");
}

}  // namespace
