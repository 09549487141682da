// Lowered graphs on the INT8 kernels give the bits that the interpreter gives: for every instruction set that this
// machine has and for AMX, emulated, any number of threads, in whichever layouts the codes lie,
// in bands of items or all at once.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "kernels/testing/emulated_amx.h"
#include "runtime/executable.h"
#include "runtime/int8_graph_builder.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

using Ints = std::vector<int64_t>;
using ir::Node;

struct Case {
  std::string name;
  std::function<std::vector<Node*>(Int8GraphBuilder&)> build;
};

std::vector<Case> Cases() {
  return {
      {"residual_network",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({2, 3, 21, 19}),
                          {.channels = 16, .kernel = 7, .stride = 2, .padding = 3, .relu = true});
         x = g.MaxPool(x);
         Node* y = g.Conv(x, {.channels = 16, .relu = true});
         x = g.Conv(y, {.channels = 16, .relu = true}, x);
         Node* shortcut = g.Conv(x, {.channels = 40, .kernel = 1, .stride = 2, .padding = 0});
         y = g.Conv(x, {.channels = 40, .stride = 2, .relu = true});
         x = g.Conv(y, {.channels = 40, .relu = true}, shortcut);
         return {g.Linear(g.Call("flatten", {g.GlobalAveragePool(x)}), 10, true)};
       }},
      {"layers_with_their_pools",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.ConvMaxPool(g.Quantized({2, 3, 41, 19}),
                                 {.channels = 16, .kernel = 7, .stride = 2, .padding = 3, .relu = true});
         return {g.GlobalAveragePoolLinear(x, 10, true),
                 g.GlobalAveragePoolLinear(g.Conv(x, {.channels = 7}), 9, false),
                 g.ConvMaxPool(x, {.channels = 6, .dilation = 2, .groups = 2})};
       }},
      {"add_and_pools",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Quantized({1, 5, 12, 10});
         Node* sum = g.Add(g.Conv(x, {.channels = 5}), x, true);
         return {g.Dequantize(g.AveragePool(sum)), g.MaxPool(sum), g.Relu(g.Add(sum, x))};
       }},
      {"convolutions",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Quantized({1, 24, 11, 13});
         return {g.Conv(x, {.channels = 24, .groups = 24, .relu = true}),
                 g.Conv(x, {.channels = 12, .padding = 2, .dilation = 2, .groups = 3}),
                 g.Conv(x, {.channels = 7, .kernel = 1, .padding = 0, .bias = false}),
                 g.Conv(x, {.channels = 33, .kernel = 5, .stride = 3, .padding = 0, .float_output = true})};
       }},
      {"flatten_of_pictures",  // NHWC codes must become row-major before a linear layer reads them.
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({3, 3, 6, 5}), {.channels = 9});
         return {g.Linear(g.Call("flatten", {x}), 13, true), g.Linear(g.Call("flatten", {x}), 6, false)};
       }},
      {"views_between_convolutions",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({1, 3, 8, 6}), {.channels = 4});
         x = g.Call("reshape", {x}, {{"shape", Ints{1, 8, 4, 6}}});
         return {g.Conv(g.Call("identity", {x}), {.channels = 4}), x};
       }},
      {"codes_as_inputs_and_outputs",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Input({g.dtype(), {2, 6, 5, 7}, PerTensor(0.02f, 11), Layout::kRowMajor});
         return {x, g.MaxPool(x), g.Conv(x, {.channels = 6}, x), g.Dequantize(x)};
       }},
      {"reference_steps_on_codes",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Quantized({1, 4, 6, 6});
         Node* joined = g.Call("cat", {x, g.Quantized({1, 2, 6, 6})}, {{"dim", 1}});
         return {g.Conv(joined, {.channels = 5}), g.Call("permute", {g.MaxPool(x)}, {{"dims", Ints{0, 2, 3, 1}}})};
       }},
      {"concatenations",  // Of branches, of a chain, of what is copied, two images at a time.
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         const auto cat = [&g](std::vector<Node*> parts) { return g.Call("cat", std::move(parts), {{"dim", 1}}); };
         Node* x = g.Conv(g.Quantized({2, 3, 14, 11}), {.channels = 16, .relu = true});
         Node* fire =
             cat({g.Conv(x, {.channels = 24, .kernel = 1, .padding = 0, .relu = true}),
                  g.Conv(x, {.channels = 20, .relu = true}), g.Conv(x, {.channels = 16, .groups = 16, .relu = true})});
         Node* pools = cat({g.MaxPool(fire), g.MaxPool(g.Conv(fire, {.channels = 7, .relu = true}))});
         Node* averages = cat({g.AveragePool(fire), g.AveragePool(x)});
         std::vector<Node*> dense = {x};
         for (int i = 0; i < 3; ++i) {
           dense.push_back(g.Conv(dense.size() == 1 ? x : cat(dense), {.channels = 5 + i, .relu = true}));
         }
         Node* chain = cat(dense);
         Node* copied = g.Call("int8.relu", {x}, g.Out(0.05f, true));
         Node* nested = cat({g.Conv(x, {.channels = 6, .relu = true}), cat({copied, fire, x}), x});
         return {g.Conv(pools, {.channels = 9, .kernel = 1, .padding = 0}),
                 g.Dequantize(pools),
                 averages,
                 g.Conv(chain, {.channels = 8}),
                 chain,
                 g.Conv(nested, {.channels = 8, .kernel = 1, .padding = 0})};
       }},
      {"elementwise",  // One pass over codes, in whichever layout they lie; a gate for each channel.
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({2, 3, 6, 7}), {.channels = 5});
         AttributeMap steps = g.Out(0.03f);
         steps.insert({"steps", std::vector<std::string>{"sigmoid(0)", "mul(1, 2)", "add(3, 1)", "tanh(4)"}});
         Node* fused = g.Call("int8.fused_elementwise", {g.GlobalAveragePool(x), x}, std::move(steps));
         return {g.Conv(fused, {.channels = 4}), g.Call("int8.hardswish", {x}, g.Out(0.02f)),
                 g.Call("int8.mul", {x, g.Quantized({2, 5, 6, 7})}, g.Out(0.02f))};
       }},
      {"other_ranks",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Quantized({5, 37});
         return {g.Dequantize(g.Relu(g.Add(x, g.Quantized({5, 37})))), g.Linear(x, 3, false)};
       }},
      {"requantize_float_in_nhwc",
       [](Int8GraphBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({1, 3, 9, 9}), {.channels = 10, .float_output = true});
         return {g.Conv(g.Quantize(x), {.channels = 4}), x};
       }},
  };
}

class Int8Test : public ::testing::TestWithParam<DType> {};

TEST_P(Int8Test, BitIdenticalToTheInterpreter) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry native, amx;
  kernels::RegisterAll(native);
  kernels::RegisterAllOnEmulatedAmx(amx);
  int convolutions_in_tiles = 0, placed = 0, in_bands = 0, runs = 0;
  for (const Case& c : Cases()) {
    Int8GraphBuilder builder(ops, GetParam());
    const ir::Graph& graph = builder.Output(c.build(builder));
    const std::vector<Tensor> inputs = SeededInputs(graph);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, inputs));
    const auto check = [&](const kernels::KernelRegistry& kernels, const ExecutableOptions& options, int threads) {
      SCOPED_TRACE(absl::StrCat(c.name, ", ", kernels::IsaName(options.isa), ", ", threads, " threads, ",
                                options.cache_bytes, " bytes of cache"));
      ++runs;  // More of them where the CPU has more instruction sets.
      ThreadPool pool(threads);
      ASSERT_OK_AND_ASSIGN(auto executable, Executable::Create(graph, kernels, &pool, options));
      for (const StepProfile& step : executable->profile()) {
        convolutions_in_tiles += step.variant == "amx_emulated";
        placed += step.layout.find(',') != std::string::npos;
        in_bands += absl::StrContains(step.variant, " turns");
      }
      for (int round = 0; round < 2; ++round) {
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, RunOnce(*executable, inputs));
        for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].SameBytes(wanted[i])) << "output " << i;
      }
    };
    ExecutableOptions options;
    for (int64_t cache_bytes : {options.cache_bytes, int64_t{64}}) {
      options.cache_bytes = cache_bytes;
      options.isa = kernels::BestIsa();
      for (int threads : {1, 2}) check(amx, options, threads);
      for (kernels::Isa isa :
           {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512Vnni, kernels::Isa::kAmx}) {
        if (!kernels::CpuSupports(isa)) continue;
        options.isa = isa;
        for (int threads : {1, 2, 3}) check(native, options, threads);
      }
    }
  }
  EXPECT_GE(convolutions_in_tiles, 10);
  EXPECT_GT(placed, 3);
  EXPECT_GT(in_bands, runs / 5);
}

INSTANTIATE_TEST_SUITE_P(Codes, Int8Test, ::testing::Values(DType::kU8, DType::kI8),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

}  // namespace
}  // namespace fuselage::runtime
