// A model cut off at any byte, or with bytes flipped, is refused or loaded: never a crash, never more memory than
// allowed. What still loads is run, too: inference of types has passed every attribute that is left.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/conformance.h"
#include "frontend/onnx/model_builder.h"
#include "frontend/onnx/onnx.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"

namespace fuselage::onnx {
namespace {

using conformance::Ops;

LoadOptions Small() {
  LoadOptions options;
  options.max_memory_bytes = 1 << 20;
  return options;
}

// A little of everything: convolution, pools, shape arithmetic, folding, quantization.
std::string SmallModel() {
  ModelBuilder model(13);
  model.Input("x", {"N", 2, 6, 6})
      .Initializer("conv.weight", Cast(Seeded({3, 2, 3, 3}, 1), DType::kF16))
      .Node("Cast", {"conv.weight"}, {"w"}, "cast")
      .Int("to", 1)
      .Node("Conv", {"x", "w"}, {"c"}, "conv")
      .Ints("pads", {1, 1, 1, 1})
      .Initializer("one", Seeded({3}, 2))
      .Initializer("var", Tensor::Of<float>({3}, {1, 2, 3}))
      .Node("BatchNormalization", {"c", "one", "one", "one", "var"}, {"b"}, "bn")
      .Float("epsilon", 1e-5f)
      .Node("Relu", {"b"}, {"r"}, "relu")
      .Node("MaxPool", {"r"}, {"p"}, "pool")
      .Ints("kernel_shape", {2, 2})
      .Ints("strides", {2, 2})
      .Initializer("s", Tensor::Scalar(0.25f))
      .Initializer("z", Tensor::Scalar<uint8_t>(128))
      .Node("QuantizeLinear", {"p", "s", "z"}, {"q"}, "quant")
      .Node("DequantizeLinear", {"q", "s", "z"}, {"d"}, "dequant")
      .Node("Shape", {"x"}, {"shape"}, "shape")
      .Initializer("zero", Tensor::Of<int64_t>({1}, {0}))
      .Node("Gather", {"shape", "zero"}, {"n"}, "gather")
      .Initializer("rest", Tensor::Of<int64_t>({1}, {-1}))
      .Node("Concat", {"n", "rest"}, {"t"}, "cat")
      .Int("axis", 0)
      .Node("Reshape", {"d", "t"}, {"f"}, "flat")
      .Initializer("fc.weight", Seeded({4, 27}, 3))
      .Node("Gemm", {"f", "fc.weight"}, {"y"}, "fc")
      .Int("transB", 1)
      .Node("Split", {"y"}, {"y0", "y1"}, "split")
      .Int("axis", 1)
      .Node("Softmax", {"y1"}, {"out"}, "soft")
      .Int("axis", 1)
      .Output("y0")
      .Output("out");
  return model.Bytes();
}

TEST(Robustness, TheModelItselfLoads) {
  const auto graph = Parse(SmallModel(), "m.onnx", Ops(), Small());
  ASSERT_TRUE(graph.ok()) << graph.status();
}

TEST(Robustness, TruncatedAtEveryByte) {
  const std::string bytes = SmallModel();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto graph = Parse(bytes.substr(0, size), "m.onnx", Ops(), Small());
    ASSERT_FALSE(graph.ok()) << "cut off at byte " << size;
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << graph.status();
    EXPECT_TRUE(absl::StrContains(graph.status().message(), absl::StrCat("truncated at byte ", size)))
        << graph.status();
  }
}

// SplitMix64 again: reproducible on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t limit) {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % limit;
  }

 private:
  uint64_t state_;
};

std::string WithFlips(std::string bytes, Random& random) {
  for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
    bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
  }
  return bytes;
}

// Where no value is large enough to take long.
void RunIfSmall(const ir::Graph& graph) {
  std::vector<Tensor> inputs;
  for (const ir::Node* node : graph.Snapshot()) {
    for (const TensorType& type : node->type().elements()) {
      if (type.num_elements() > 1 << 12) return;
    }
  }
  for (const ir::Node* node : graph.placeholders()) inputs.push_back(SeededTensor(node->tensor_type(), 1));
  const auto outputs = interpreter::Run(graph, inputs);
  // A computed scale may still turn out wrong.
  EXPECT_TRUE(outputs.ok() || absl::IsInvalidArgument(outputs.status())) << outputs.status();
}

// True where the model loads all the same.
bool LoadAndRun(const std::string& bytes) {
  const auto graph = Parse(bytes, "m.onnx", Ops(), Small());
  if (!graph.ok()) {
    EXPECT_TRUE(absl::IsInvalidArgument(graph.status()) || absl::IsUnimplemented(graph.status()) ||
                absl::IsResourceExhausted(graph.status()))
        << graph.status();
    return false;
  }
  EXPECT_TRUE((*graph)->Verify().ok());
  RunIfSmall(**graph);
  return true;
}

TEST(Robustness, FlippedBytes) {
  const std::string bytes = SmallModel();
  int loaded = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    Random random(round);
    loaded += LoadAndRun(WithFlips(bytes, random));
  }
  // Flips in weights are harmless, flips in structure are not: both happen.
  EXPECT_GT(loaded, kRounds / 8);
  EXPECT_LT(loaded, kRounds * 7 / 8);
}

// Every operator's attributes and types.
TEST(Robustness, FlippedBytesInTheOfficialTestModels) {
  uint64_t seed = 0;
  for (const auto& path : conformance::AllModels()) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.empty() || bytes.size() > 4096) continue;
    for (int round = 0; round < 8; ++round) {
      Random random(++seed);
      LoadAndRun(WithFlips(bytes, random));
    }
  }
}

TEST(Robustness, RandomBytes) {
  for (int round = 0; round < 2000; ++round) {
    Random random(round);
    std::string bytes(random.Below(200), '\0');
    for (char& c : bytes) c = static_cast<char>(random.Below(256));
    EXPECT_FALSE(Parse(bytes, "m.onnx", Ops(), Small()).ok());
    const auto tensor = ParseTensor(bytes, "t.pb", 1 << 20);
    if (tensor.ok()) {
      EXPECT_LE(tensor->byte_size(), 1 << 20);
    }
  }
}

}  // namespace
}  // namespace fuselage::onnx
