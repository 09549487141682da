// Programs of one network at other batch sizes, with other threads, share what their kernels pack.
#include "kernels/core/packed_weights.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "kernels/register_all.h"
#include "kernels/register_all_reproducible.h"
#include "kernels/testing/emulated_amx.h"
#include "runtime/int8_graph_builder.h"

namespace fuselage::runtime {
namespace {

using ir::Node;

// Packs again at every call: what is shared must be what the caller would have packed, or a layout's name says too
// little.
class CheckedWeights final : public kernels::PackedWeights {
 public:
  std::shared_ptr<const Tensor> Get(const kernels::Parameter& parameter, const std::string& layout,
                                    absl::FunctionRef<Tensor()> pack) override {
    const Tensor wanted = pack();
    auto found = PackedWeights::Get(parameter, layout, pack);
    EXPECT_TRUE(found->SameBytes(wanted)) << layout;
    return found;
  }
};

class PackedWeightsTest : public ::testing::Test {
 protected:
  PackedWeightsTest() {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(native_);
    kernels::RegisterAllOnEmulatedAmx(amx_);
  }

  // The bytes of the program's weights.
  static int64_t Compile(const ir::Graph& graph, int64_t batch, const kernels::KernelRegistry& kernels, int threads,
                         kernels::Isa isa, kernels::PackedWeights* weights) {
    const std::unique_ptr<ir::Graph> clone = graph.Clone();
    EXPECT_OK(clone->SetBatch(batch));
    ThreadPool pool(threads);
    ExecutableOptions options;
    options.isa = isa;
    options.weights = weights;
    const auto executable = Executable::Create(*clone, kernels, &pool, options);
    EXPECT_OK(executable);
    return executable.ok() ? (*executable)->weight_bytes() : 0;
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry native_, amx_;
};

// Has layers of every kind that packs: as panels, transformed, by channels, by groups, in tiles.
const ir::Graph& Network(Int8GraphBuilder& g) {
  Node* x = g.ConvMaxPool(g.Quantized({1, 3, 64, 60}), {.channels = 32, .kernel = 7, .stride = 2, .padding = 3});
  x = g.Conv(x, {.channels = 64}, g.Conv(x, {.channels = 64, .kernel = 1, .padding = 0}));
  x = g.Conv(g.Conv(x, {.channels = 64, .groups = 64}), {.channels = 64, .stride = 2, .groups = 16});
  x = g.Conv(x, {.channels = 48, .padding = 2, .dilation = 2, .groups = 2});
  Node* floats = g.Conv(g.Conv(x, {.channels = 64}), {.channels = 40, .float_output = true});
  Node* logits = g.Linear(g.Call("flatten", {g.GlobalAveragePool(x)}), 37, false);
  return g.Output({floats, g.GlobalAveragePoolLinear(x, 24, true), g.Linear(logits, 10, true)});
}

TEST_F(PackedWeightsTest, AreWhatEachKernelWouldPack) {
  for (DType dtype : {DType::kU8, DType::kI8}) {
    Int8GraphBuilder g(ops_, dtype);
    const ir::Graph& graph = Network(g);
    CheckedWeights weights;  // Of all instruction sets.
    for (int64_t batch : {1, 2, 16}) {
      for (int threads : {1, 4}) {
        for (kernels::Isa isa : kernels::SupportedIsas()) Compile(graph, batch, native_, threads, isa, &weights);
        Compile(graph, batch, amx_, threads, kernels::BestIsa(), &weights);
      }
    }
  }
}

TEST_F(PackedWeightsTest, ArePackedOncePerInstructionSet) {
  Int8GraphBuilder g(ops_, DType::kU8);
  const ir::Graph& graph = g.Output({g.ResNet18(1, 10)});
  constexpr int kPackings = 2 * 21;  // Of each layer its weights and their sums.
  for (kernels::Isa isa : kernels::SupportedIsas()) {
    kernels::PackedWeights weights;
    for (int threads : {1, 2}) {
      Compile(graph, 1, native_, threads, isa, &weights);
      EXPECT_EQ(weights.packings(), kPackings) << kernels::IsaName(isa) << ", threads " << threads;
    }
    // A larger batch may be computed in another way, which is packed for as well.
    for (int64_t batch : {1, 16}) {
      const int64_t bytes = Compile(graph, batch, native_, 1, isa, &weights), packings = weights.packings();
      EXPECT_LT(packings, kPackings + 21) << kernels::IsaName(isa);
      for (int threads : {1, 2}) {
        EXPECT_EQ(Compile(graph, batch, native_, threads, isa, &weights), bytes) << "each once";
        EXPECT_EQ(weights.packings(), packings) << kernels::IsaName(isa) << ", batch " << batch;
      }
    }
  }
}

TEST_F(PackedWeightsTest, OfFloats) {
  GraphBuilder g(ops_);
  const auto weight = [](Shape shape) {
    return SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, 1);
  };
  Node* x = g.CallModule("conv2d", {g.Input({1, 16, 12, 12})}, {}, {{"weight", weight({32, 16, 3, 3})}});
  x = g.CallModule("linear", {g.Call("flatten", {x}, {{"start_dim", 1}})}, {}, {{"weight", weight({10, 3200})}});
  const ir::Graph& graph = g.Output({x});
  CheckedWeights weights;
  const auto compile = [&] {
    for (int64_t batch : {1, 16}) {
      for (int threads : {1, 2}) Compile(graph, batch, native_, threads, kernels::BestIsa(), &weights);
    }
    return weights.packings();
  };
  const int64_t packings = compile();
  EXPECT_LT(packings, 2 * 4) << "oneDNN may choose other layouts for another batch";
  EXPECT_EQ(compile(), packings);
}

// The kernels whose weights are no INT8 layer's, some with the same weight and another form of the layer.
TEST_F(PackedWeightsTest, OfOtherKernels) {
  ASSERT_OK_AND_ASSIGN(const auto graph, ir::Parse(R"(graph @others {
  param @b: i8[9,5] = seed(1)
  param @f: f32[8,2,3,3] = seed(2)
  param @r: f32[2,12,4] = seed(3)
  param @u: f32[2,12,6] = seed(4)
  param @v: f32[8,8] = seed(5)
  param @w: i8[4,2,3,3] = seed(6)
  param @z: i8[5] = [1, 2, 3, 4, 5]
  param @z1: i8[] = [7]
  module @conv = conv2d(groups=2, weight=@f)
  module @gru = gru(direction="bidirectional", recurrent_weight=@r, weight=@u)
  module @linear = linear(weight=@v)
  module @resets_last = gru(direction="bidirectional", linear_before_reset=true, recurrent_weight=@r, weight=@u)
  %x: u8[1,4,8,8] = placeholder
  %c: u8[1,9] = placeholder
  %s: f32[5,1,6] = placeholder
  %i: f32[1,4,8,8] = placeholder
  %b: i8[9,5] = get_attr @b
  %w: i8[4,2,3,3] = get_attr @w
  %z: i8[5] = get_attr @z
  %z1: i8[] = get_attr @z1
  %plain: i32[1,5] = call_function matmul_integer(%c, %b)
  %columns: i32[1,5] = call_function matmul_integer(%c, %b, none, %z)
  %one: i32[1,5] = call_function matmul_integer(%c, %b, none, %z1)
  %integers: i32[1,4,6,6] = call_function conv_integer2d(%x, %w, none, %z1, groups=2)
  %gru: (f32[5,2,1,4], f32[2,1,4]) = call_module @gru(%s)
  %last: (f32[5,2,1,4], f32[2,1,4]) = call_module @resets_last(%s)
  %y: f32[5,2,1,4] = call_function getitem(%gru, index=0)
  %h: f32[2,1,4] = call_function getitem(%last, index=1)
  %floats: f32[1,8,6,6] = call_module @conv(%i)
  %linear: f32[1,4,8,8] = call_module @linear(%i)
  output(%plain, %columns, %one, %integers, %y, %h, %floats, %linear)
})",
                                                   ops_));
  kernels::KernelRegistry reproducible;
  kernels::RegisterAllReproducible(reproducible);
  for (const kernels::KernelRegistry* kernels : {&native_, &reproducible}) {
    for (kernels::Isa isa : kernels::SupportedIsas()) {
      CheckedWeights weights;
      const int64_t bytes = Compile(*graph, 1, *kernels, 1, isa, &weights);
      const int64_t packings = weights.packings();
      EXPECT_GT(packings, 0);
      EXPECT_EQ(Compile(*graph, 1, *kernels, 2, isa, &weights), bytes);
      EXPECT_EQ(weights.packings(), packings) << kernels::IsaName(isa);
    }
  }
}

TEST_F(PackedWeightsTest, CountOnceInAProgram) {
  const auto parse = [&](absl::string_view outputs) {
    return ir::Parse(absl::StrCat(R"(graph @shared {
  param @w: i8[16,16]<scale=0.01> = seed(1)
  module @fc = int8.linear(out_dtype=f32, weight=@w)
  %x: u8[2,16]<scale=0.5> = placeholder
  %a: f32[2,16] = call_module @fc(%x)
)",
                                  outputs, "}"),
                     ops_);
  };
  ASSERT_OK_AND_ASSIGN(const auto once, parse("  output(%a)\n"));
  ASSERT_OK_AND_ASSIGN(const auto twice, parse("  %b: f32[2,16] = call_module @fc(%x)\n  output(%a, %b)\n"));
  const auto compile = [&](const ir::Graph& graph, kernels::PackedWeights* weights) {
    return Compile(graph, 2, native_, 1, kernels::Isa::kScalar, weights);
  };
  kernels::PackedWeights weights;
  const int64_t shared = compile(*twice, &weights);
  EXPECT_EQ(weights.packings(), 2) << "the weights, and their sums";
  EXPECT_EQ(2 * compile(*once, &weights) - shared, 16 * 16);
  EXPECT_EQ(compile(*twice, nullptr), shared) << "no other program has them";
}

}  // namespace
}  // namespace fuselage::runtime
