// Bands change no bit, keep what lives for longer than a turn, and are where caches are too small for a whole batch.
#include "runtime/bands.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/random_graph.h"
#include "kernels/register_all.h"
#include "kernels/register_all_reproducible.h"
#include "runtime/executable.h"
#include "runtime/int8_graph_builder.h"

namespace fuselage::runtime {
namespace {

using ir::Node;
using kernels::Isa;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Int8GraphBuilder::ConvParams kConv = {.channels = 16, .relu = true}, kStride = {.channels = 16, .stride = 2};

class BandsTest : public ::testing::Test {
 protected:
  BandsTest() {
    ops::RegisterAll(ops_);
    // In the place of oneDNN's, whose products of floats may differ in bits: bands.h.
    kernels::RegisterAllReproducible(kernels_);
    kernels::KernelRegistry all;
    kernels::RegisterAll(all);
    for (const kernels::KernelEntry* entry : all.Sorted()) {
      if (kernels_.FindOrNull(entry->op) == nullptr) kernels_.Register(*entry);
    }
  }

  std::unique_ptr<Executable> Make(const ir::Graph& graph, int64_t cache_bytes, Isa isa = kernels::BestIsa()) {
    ExecutableOptions options;
    options.isa = isa;
    options.cache_bytes = cache_bytes;
    absl::StatusOr<std::unique_ptr<Executable>> executable = Executable::Create(graph, kernels_, &pool_, options);
    return executable.ok() ? *std::move(executable) : nullptr;
  }

  // The steps that take turns, as "op, 4 turns".
  static std::vector<std::string> Turns(const Executable& executable) {
    std::vector<std::string> steps;
    for (const StepProfile& step : executable.profile()) {
      if (step.variant.find(" turns") == std::string::npos) continue;
      steps.push_back(step.op + step.variant.substr(step.variant.rfind(',')));
    }
    return steps;
  }

  // Compares what runs in bands with what does not. How many steps take turns; 0 also where there is nothing to
  // compare.
  int Check(const ir::Graph& graph, int64_t cache_bytes) {
    const std::unique_ptr<Executable> whole = Make(graph, 0), banded = Make(graph, cache_bytes);
    EXPECT_EQ(whole == nullptr, banded == nullptr);
    if (whole == nullptr || banded == nullptr) return 0;
    EXPECT_TRUE(Turns(*whole).empty());
    const std::vector<Tensor> inputs = SeededInputs(graph);
    const absl::StatusOr<std::vector<Tensor>> wanted = RunOnce(*whole, inputs);
    for (int round = 0; round < 2; ++round) {
      const absl::StatusOr<std::vector<Tensor>> found = RunOnce(*banded, inputs);
      EXPECT_EQ(found.ok(), wanted.ok());
      if (!found.ok() || !wanted.ok()) return 0;
      for (size_t i = 0; i < found->size(); ++i) EXPECT_TRUE((*found)[i].SameBytes((*wanted)[i])) << "output " << i;
    }
    return static_cast<int>(Turns(*banded).size());
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  ThreadPool pool_{2};
};

TEST_F(BandsTest, RandomGraphsKeepTheirBits) {
  int in_bands = 0;
  for (int seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const std::unique_ptr<ir::Graph> graph = fuselage::testing::RandomGraph(seed, ops_);
    for (const int64_t batch : {0, 4, 6}) {
      const std::unique_ptr<ir::Graph> copy = graph->Clone();
      if (batch > 0 && !copy->SetBatch(batch).ok()) continue;
      for (const int64_t cache_bytes : {64, 1024}) in_bands += Check(*copy, cache_bytes);
    }
  }
  EXPECT_GT(in_bands, 1000);
}

// Images of 56x56 by 16 channels take 50 kB each, the weights of a layer 2 kB.
TEST_F(BandsTest, AsManyImagesAsTheCacheHolds) {
  Int8GraphBuilder g(ops_, DType::kU8);
  Node* x = g.Conv(g.Quantized({8, 16, 56, 56}), kConv);
  for (int i = 0; i < 4; ++i) x = g.Conv(x, kConv);
  const ir::Graph& graph = g.Output({x});
  EXPECT_GE(Check(graph, 256 << 10), 5);
  EXPECT_EQ(Check(graph, 64 << 20), 0) << "all of them fit";
  EXPECT_LT(Make(graph, 256 << 10)->arena_bytes(), Make(graph, 64 << 20)->arena_bytes() / 2);
}

// Behind products of 1000 pairs VNNI hides what images of 200 kB move, AMX does not. Of 5x5, which no Winograd runs, so
// that weights are about as large whatever kernels this machine has.
TEST_F(BandsTest, WhereProductsDoNotHideIt) {
  Int8GraphBuilder g(ops_, DType::kU8);
  constexpr Int8GraphBuilder::ConvParams kLayer = {.channels = 40, .kernel = 5, .padding = 2, .relu = true};
  Node* x = g.Conv(g.Quantized({8, 40, 72, 72}), kLayer);
  for (int i = 0; i < 3; ++i) x = g.Conv(x, kLayer);
  const ir::Graph& graph = g.Output({x});
  const auto convs = [&](Isa isa) {
    const std::vector<std::string> turns = Turns(*Make(graph, 1 << 20, isa));
    return std::count_if(turns.begin(), turns.end(),
                         [](const std::string& s) { return s.rfind("int8.conv2d", 0) == 0; });
  };
  EXPECT_EQ(convs(Isa::kAvx512Vnni), 1) << "the one behind quantize";
  EXPECT_EQ(convs(Isa::kAmx), 4);
}

// Weights that do not stay in the cache would be read in each turn.
TEST_F(BandsTest, NotWhereWeightsWeighMore) {
  Int8GraphBuilder g(ops_, DType::kU8);
  constexpr Int8GraphBuilder::ConvParams kWide = {.channels = 256, .relu = true};
  Node* x = g.Conv(g.Quantized({8, 256, 3, 3}), kWide);
  for (int i = 0; i < 3; ++i) x = g.Conv(x, kWide);
  EXPECT_EQ(Check(g.Output({x}), 256 << 10), 0);
}

// Values that are read in a band and written before it, or written in it and read behind it, live in all its turns, and
// so do outputs of the graph.
TEST_F(BandsTest, WhatComesAndGoesIsKept) {
  Int8GraphBuilder g(ops_, DType::kU8);
  Node* input = g.Input({6, 16, 14, 14});
  Node* x = g.Quantize(input);
  Node *skip = g.Conv(x, kConv), *y = skip;
  std::vector<Node*> outputs;
  for (int i = 0; i < 6; ++i) {
    y = g.Conv(g.Conv(y, kConv), kConv, i % 2 == 0 ? skip : nullptr);
    if (i == 2) outputs.push_back(y);
    if (i == 3) outputs.push_back(g.Call("mean", {g.Dequantize(y)}, {{"dims", std::vector<int64_t>{0}}}));
    if (i == 4) y = g.Conv(y, kConv, g.Quantize(g.Call("sin", {input})));
  }
  outputs.push_back(g.Linear(g.Call("flatten", {g.GlobalAveragePool(g.Conv(y, kStride))}), 10, true));
  const ir::Graph& graph = g.Output(std::move(outputs));
  int most = 0;
  for (int64_t cache_bytes = 1 << 10; cache_bytes <= 1 << 17; cache_bytes *= 2) {
    SCOPED_TRACE(cache_bytes);
    most = std::max(most, Check(graph, cache_bytes));
  }
  EXPECT_GT(most, 10);
}

// What is the same for all items is read in every turn; an op along axis 0 takes them all.
TEST_F(BandsTest, NotAlongTheirAxis) {
  GraphBuilder g(ops_);
  Node* x = g.Call("relu", {g.Input({64, 64})});
  Node* row = g.Call("sigmoid", {g.Input({64})});
  Node* y = g.Call("add", {g.Call("mul", {x, row}), g.Call("tanh", {row})});
  y = g.Call("relu", {g.Call("softmax", {g.Call("neg", {y})}, {{"dim", 0}})});
  y = g.Call("cat", {y, g.Call("abs", {y})}, {{"dim", 0}});
  const ir::Graph& graph = g.Output({y, row});
  EXPECT_GT(Check(graph, 1 << 10), 2);
  EXPECT_THAT(Turns(*Make(graph, 1 << 10)), Not(::testing::Contains(HasSubstr("cat"))));
}

TEST_F(BandsTest, NotWhereItemsHaveScalesOfTheirOwn) {
  GraphBuilder g(ops_);
  Node* codes = g.Input({DType::kI8, {4, 64}, PerAxis(0, {0.5f, 0.25f, 0.125f, 1}), Layout::kRowMajor});
  Node* x = g.Call("relu", {g.Call("dequantize", {codes})});
  const ir::Graph& graph = g.Output({g.Call("neg", {x})});
  EXPECT_GT(Check(graph, 64), 0);
  EXPECT_THAT(Turns(*Make(graph, 64)), Not(::testing::Contains(HasSubstr("dequantize"))));
}

}  // namespace
}  // namespace fuselage::runtime
