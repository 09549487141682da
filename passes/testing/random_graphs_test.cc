// Every pass on random graphs: alone, and subsets in random order (see properties.h for what must hold).
//   bazel test //passes/testing:random_graphs_test         200 seeds
//   bazel test //passes/testing:random_graphs_full_test    1,000 seeds
//   bazel run //passes/testing:random_graphs_test -- --first=71 --seeds=1
// Any order is legal: a pass that does not find what it needs declines. A failure prints the seed, the passes that it
// takes and a reduced graph, ready for a text case.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/random.h"
#include "ir/testing/random_graph.h"
#include "ir/text.h"
#include "kernels/register_all.h"
#include "passes/module_call/module_call.h"
#include "passes/register_all.h"
#include "passes/rewrite/rewrite.h"
#include "passes/testing/properties.h"
#include "passes/testing/rounding.h"
#include "passes/testing/shrink.h"

namespace fuselage::testing {
namespace {

constexpr int kOrders = 4;  // For each seed.
constexpr uint64_t kSeedsOfATest = 10;

// A pass that does what its options say needs some.
RewriteOptions SomeRules() {
  RewriteOptions options;
  RewriteOptions::Rule& gemm = *options.add_rules();
  gemm.set_name("gemm");
  gemm.set_pattern(
      "graph @p { %x = placeholder %w = placeholder %b = get_attr %m = call matmul(%x, %w) %y = call add(%m, %b) "
      "output(%y) }");
  gemm.set_replacement(
      "graph @r { %x = placeholder %w = placeholder %b = get_attr %y = call_function gemm(%x, %w, %b) output(%y) }");
  RewriteOptions::Rule& conv_relu = *options.add_rules();
  conv_relu.set_name("conv_relu");
  conv_relu.set_pattern(
      "graph @p { %x = placeholder %c = call_module conv2d(%x, weight=$w, bias=$b?, stride=$s, padding=$p, "
      "dilation=$d, groups=$g) %y = call relu(%c) output(%y) }");
  conv_relu.set_replacement(
      "graph @r { %x = placeholder %y = call_module conv2d(%x, weight=$w, bias=$b?, stride=$s, padding=$p, "
      "dilation=$d, groups=$g, activation=\"relu\") output(%y) }");
  RewriteOptions::Rule& linear_relu = *options.add_rules();
  linear_relu.set_name("linear_relu");
  linear_relu.set_pattern(
      "graph @p { %x = placeholder %c = call_module linear(%x, weight=$w, bias=$b?) %y = call relu(%c) output(%y) }");
  linear_relu.set_replacement(
      "graph @r { %x = placeholder %y = call_module linear(%x, weight=$w, bias=$b?, activation=\"relu\") "
      "output(%y) }");
  RewriteOptions::Rule& relu_twice = *options.add_rules();
  relu_twice.set_name("relu_twice");
  relu_twice.set_pattern("graph @p { %x = placeholder %a = call relu(%x) %b = call relu(%a) output(%b) }");
  relu_twice.set_replacement("graph @r { %x = placeholder %b = call_function relu(%x) output(%b) }");
  return options;
}

// Of all weights of a call that are codes.
int LargestCode(const ir::Node& call) {
  int largest = 0;
  for (const auto& [operand, name] : call.module()->parameters) {
    const Tensor& parameter = *call.graph().FindParameterOrNull(name)->tensor;
    if (parameter.dtype() != DType::kI8) continue;
    for (const int8_t code : parameter.values<int8_t>()) largest = std::max(largest, std::abs(code));
  }
  return largest;
}

// Some time for each call, which depends on whether it reads codes, on its weights' bits, and on the variant that runs
// it where it has a choice. Conversions take little, so that FP32, INT8 and both have their turn.
class SomeTimes : public passes::Profiler {
 public:
  explicit SomeTimes(const kernels::KernelRegistry& kernels) : kernels_(kernels) {}

  absl::StatusOr<std::vector<std::vector<Call>>> Profile(absl::Span<const ir::Graph* const> graphs) override {
    std::vector<std::vector<Call>> runs;
    for (const ir::Graph* graph : graphs) {
      std::vector<Call>& calls = runs.emplace_back();
      for (const ir::Node* node = graph->first(); node != nullptr; node = node->next()) {
        if (!node->is_call()) continue;
        std::string text = node->name();
        const bool converts = node->IsOp("quantize") || node->IsOp("dequantize");
        if (node->num_operands() > 0 && node->operand(0)->IsOp("dequantize")) text += " codes";
        std::vector<std::string> variants;
        if (node->module() != nullptr) {
          variants = module_call::VariantsOf(*node, kernels_);
          absl::StrAppend(&text, LargestCode(*node));
        }
        if (!variants.empty()) text += variants[0];
        uint32_t hash = 1;
        for (const char c : text) hash = hash * 31 + static_cast<uint8_t>(c);
        const bool usual = !variants.empty() && variants[0] == "usual";  // Any other is faster.
        const double seconds = converts ? 1 : 1 + hash % 100 + (usual ? 100 : 0);
        calls.push_back({node->op()->name, node->SourcesOrSelf(), 0, seconds});
      }
    }
    return runs;
  }

 private:
  const kernels::KernelRegistry& kernels_;
};

// All, where those with a choice have four variants, so that there is a choice on any machine.
void RegisterKernels(kernels::KernelRegistry& registry) {
  kernels::KernelRegistry all;
  kernels::RegisterAll(all);
  for (const kernels::KernelEntry* entry : all.Sorted()) {
    kernels::KernelEntry with_four = *entry;
    if (entry->variants != nullptr) {
      with_four.variants = [](const kernels::KernelDesc& desc) -> std::vector<std::string> {
        std::vector<std::string> variants = {"usual", "one more", "a third", "the newest"};
        const auto own = std::find(variants.begin(), variants.end(), desc.GetString("variant"));
        if (own != variants.end()) std::rotate(variants.begin(), own, own + 1);
        return variants;
      };
    }
    registry.Register(std::move(with_four));
  }
}

class AllPasses {
 public:
  AllPasses() : runner_(SeededRunner()), profiler_(kernels_) {
    ops::RegisterAll(ops_);
    passes::RegisterAll(registry_);
    RegisterKernels(kernels_);
    environment_.runner = runner_.get();
    environment_.kernels = &kernels_;
    environment_.profiler = &profiler_;
    for (const std::string& type : registry_.OptionTypes()) {
      google::protobuf::Any options;
      options.set_type_url(absl::StrCat("type.googleapis.com/", type));
      if (type == "fuselage.RewriteOptions") options.PackFrom(SomeRules());
      if (type == "fuselage.QuantizeOptions") options.PackFrom(ByTheExtremes());
      Add(options);
    }
    QuantizeOptions fastest = ByTheExtremes();
    fastest.set_precision(QuantizeOptions::FASTEST);
    fastest.set_weights(QuantizeOptions::PER_CHANNEL_7_OR_8_BITS);
    google::protobuf::Any options;
    options.PackFrom(fastest);
    Add(options);
  }

  std::vector<const passes::Pass*> passes() const {
    std::vector<const passes::Pass*> all;
    for (const auto& pass : passes_) all.push_back(pass.get());
    return all;
  }
  // Odd seeds may hold codes behind arithmetic; a third of all holds none.
  static bool Rounded(uint64_t seed) { return seed % 2 == 1; }
  std::unique_ptr<ir::Graph> MakeGraph(uint64_t seed) const {
    RandomGraphOptions options;
    options.round_arithmetic = Rounded(seed);
    options.quantized = seed % 3 != 0;
    return RandomGraph(seed, ops_, options);
  }

 private:
  void Add(const google::protobuf::Any& options) {
    absl::StatusOr<std::unique_ptr<passes::Pass>> pass = registry_.Create(options, environment_);
    FUSELAGE_CHECK(pass.ok());
    passes_.push_back(*std::move(pass));
  }

  ir::OpRegistry ops_;
  passes::PassRegistry registry_;
  kernels::KernelRegistry kernels_;
  std::unique_ptr<passes::Runner> runner_;
  SomeTimes profiler_;
  passes::PassEnvironment environment_;
  std::vector<std::unique_ptr<passes::Pass>> passes_;
};

const AllPasses& All() {
  static const AllPasses& all = *new AllPasses();
  return all;
}

// The start of "fusion: the outputs differ: output 0 ...", which a smaller graph must share: the pass and what does not
// hold.
std::string Kind(const absl::Status& status) {
  const std::string message(status.message());
  const size_t first = message.find(": ");
  return message.substr(0, message.find(": ", first == std::string::npos ? first : first + 2));
}

absl::Status Check(const std::vector<const passes::Pass*>& passes, bool rounded, const ir::Graph& graph) {
  return CheckPasses(passes, rounded, *graph.Clone());
}

// The seed, the passes and the graph, as small as they get.
std::string Reduced(uint64_t seed, std::vector<const passes::Pass*> passes, const ir::Graph& graph) {
  const bool rounded = AllPasses::Rounded(seed);
  const absl::Status status = Check(passes, rounded, graph);
  const auto fails = [&](const std::vector<const passes::Pass*>& some, const ir::Graph& smaller) {
    const absl::Status found = Check(some, rounded, smaller);
    return !found.ok() && Kind(found) == Kind(status);
  };
  for (size_t i = passes.size(); i-- > 0;) {
    std::vector<const passes::Pass*> fewer = passes;
    fewer.erase(fewer.begin() + i);
    if (!fewer.empty() && fails(fewer, graph)) passes = fewer;
  }
  const std::unique_ptr<ir::Graph> small =
      Shrink(graph, [&](const ir::Graph& smaller) { return fails(passes, smaller); });
  const std::string names = absl::StrJoin(
      passes, ", ", [](std::string* out, const passes::Pass* pass) { absl::StrAppend(out, pass->name()); });
  return absl::StrCat("seed ", seed, ", passes ", names, "\n", Check(passes, rounded, *small).message(), "\n",
                      ir::Print(*small));
}

class SeedsTest : public ::testing::Test {
 public:
  SeedsTest(uint64_t first, uint64_t count) : first_(first), count_(count) {}

  void TestBody() override {
    for (uint64_t seed = first_; seed < first_ + count_; ++seed) {
      const std::unique_ptr<ir::Graph> graph = All().MakeGraph(seed);
      Random random(seed);
      std::vector<std::vector<const passes::Pass*>> orders;
      for (const passes::Pass* pass : All().passes()) orders.push_back({pass});
      for (int i = 0; i < kOrders; ++i) {
        std::vector<const passes::Pass*> order = All().passes();
        random.Shuffle(order);
        order.resize(random.Between(2, static_cast<int64_t>(order.size())));
        orders.push_back(order);
      }
      std::string failed;  // One pass at fault is enough for a seed.
      for (const std::vector<const passes::Pass*>& order : orders) {
        const absl::Status status = Check(order, AllPasses::Rounded(seed), *graph);
        if (status.ok() || absl::StrContains(failed, Kind(status))) continue;
        absl::StrAppend(&failed, Kind(status), "\n");
        ADD_FAILURE() << Reduced(seed, order, *graph);
      }
    }
  }

 private:
  uint64_t first_, count_;
};

// A property of nothing holds always: each pass must find work in a good part of the graphs.
TEST(RandomGraphsTest, EachPassAppliesOften) {
  std::map<const passes::Pass*, int> applied;
  double lowest_snr_db = std::numeric_limits<double>::infinity();
  uint64_t lowest_seed = 0;
  constexpr int kSeeds = 200;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const passes::Pass* pass : All().passes()) {
      const std::unique_ptr<ir::Graph> graph = All().MakeGraph(seed);
      const absl::StatusOr<PassOutcome> outcome = CheckPass(*pass, /*rounded=*/true, *graph);
      if (!outcome.ok()) continue;  // Reported by the seed's own test.
      applied[pass] += outcome->applied > 0;
      if (outcome->worst_snr_db < lowest_snr_db) {
        lowest_snr_db = outcome->worst_snr_db;
        lowest_seed = seed;
      }
    }
  }
  for (const passes::Pass* pass : All().passes()) {
    const int graphs = applied[pass];
    RecordProperty(std::string(pass->name()), graphs);
    EXPECT_GE(graphs, kSeeds / 10) << pass->name() << ": give ir/testing/recipes what it matches";
  }
  // No bound: what half a step does to an output is up to the graph. rounding.h bounds the steps.
  std::cout << "The lowest SNR of a quantized graph is " << lowest_snr_db << " dB, of seed " << lowest_seed << "\n";
}

void RegisterSeeds(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; seed += kSeedsOfATest) {
    const uint64_t some = std::min(kSeedsOfATest, first + count - seed);
    const std::string name = absl::StrCat("From", seed, "To", seed + some - 1);
    ::testing::RegisterTest("Seeds", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [seed, some]() -> SeedsTest* { return new SeedsTest(seed, some); });
  }
}

}  // namespace
}  // namespace fuselage::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  uint64_t first = 0, seeds = 200;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--first=") && absl::SimpleAtoi(argument, &first)) continue;
    if (absl::ConsumePrefix(&argument, "--seeds=") && absl::SimpleAtoi(argument, &seeds)) continue;
    std::cerr << "unknown argument " << argv[i] << ", wanted --first=N or --seeds=N\n";
    return 2;
  }
  fuselage::testing::RegisterSeeds(first, seeds);
  return RUN_ALL_TESTS();
}
