// Whole runs on a tiny network that measure what to decide by: ablation, sensitivity, search.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/results.pb.h"
#include "harness/testing/runs.h"
#include "harness/testing/testing.h"

namespace fuselage::harness {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeIrWorkplace;
using testing::MakeWorkplace;
using testing::Outcome;
using testing::Overwrite;
using testing::ReadResults;
using testing::RunTiny;
using testing::Workplace;

constexpr char kFast[] = "benchmark { batches: 1 threads: 1 repetitions: 3 min_time_ms: 1 }";

std::string Fast(const std::string& more) { return std::string(kFast) + more; }

void Edit(const Workplace& place, const std::string& old, const std::string& now) {
  std::string text = ReadFile(place.config).value_or("");
  const size_t found = text.find(old);
  ASSERT_NE(found, std::string::npos) << old;
  Overwrite(place.config, text.replace(found, old.size(), now));
}

// An error of the config, which leaves no report.
void ExpectUsageError(const Workplace& place, const std::string& message) {
  const Outcome outcome = RunTiny(place);
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr(message));
  EXPECT_FALSE(FileExists(place.out + "/results.json"));
}

TEST(Ablation, EachPassInTurn) {
  const Workplace place = MakeWorkplace("ablation", Fast("ablation {}"));
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Passes switched off in turn, variant int8, batch 1, threads 1"),
                                 HasSubstr("accuracy of 24 images")));
  const Results results = ReadResults(place.out);
  const Results::Ablation& ablation = results.ablation();
  EXPECT_EQ(ablation.whole().top1(), results.variants(1).top1());
  EXPECT_EQ(ablation.whole().weight_bytes(), results.variants(1).weight_bytes());
  ASSERT_EQ(ablation.rows_size(), results.passes_size());
  for (int i = 0; i < ablation.rows_size(); ++i) {
    const auto& row = ablation.rows(i);
    EXPECT_EQ(row.pass(), results.passes(i).name());
    EXPECT_EQ(row.has_without(), row.why_not().empty() && !row.same()) << row.pass();
    EXPECT_EQ(row.has_gained_ms(), row.has_without()) << row.pass();
    EXPECT_LE(row.gained_ms().low(), row.gained_ms().high());
  }
  const auto& quantize = ablation.rows(3);
  ASSERT_EQ(quantize.pass(), "quantize");
  EXPECT_GT(quantize.without().snr_db(), ablation.whole().snr_db() + 20) << "in FP32";
  EXPECT_EQ(quantize.without().weight_bytes(), results.variants(0).weight_bytes());
  EXPECT_TRUE(ablation.rows(7).same()) << "cleanup has nothing to do here";
}

// The fixed point has one round, which must find nothing to do.
TEST(Ablation, NamesAPassThatTheRestNeeds) {
  const Workplace place = MakeWorkplace("ablation_needed", Fast("ablation { samples: 1 }"));
  const std::string fusion = "steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } }";
  Edit(place, fusion,
       "steps { fixed_point { max_rounds: 1 steps { pass { [type.googleapis.com/fuselage.ConvBnOptions] "
       "{} } } } } " +
           fusion);
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("not measured: pipeline: a fixed_point still changes after 1 rounds"));
  const Results::Ablation ablation = ReadResults(place.out).ablation();
  EXPECT_EQ(ablation.rows(1).pass(), "conv_bn");
  EXPECT_THAT(ablation.rows(1).why_not(), HasSubstr("still changes"));
  EXPECT_FALSE(ablation.rows(1).has_without());
  EXPECT_EQ(ablation.rows(2).pass(), "conv_bn");
  EXPECT_TRUE(ablation.rows(2).same()) << "in the fixed point it has nothing to do";
}

TEST(Ablation, FewerSamples) {
  const Workplace place = MakeWorkplace("ablation_samples", Fast("ablation { samples: 5 }"));
  ASSERT_EQ(RunTiny(place).code, kOk);
  EXPECT_EQ(ReadResults(place.out).ablation().samples(), 5);
}

TEST(Ablation, WantsTheLastGraph) {
  const Workplace place =
      MakeIrWorkplace("ablation_no_variant", "graph @g {\n  %x: f32[1,4] = placeholder\n  output(%x)\n}\n",
                      Fast("ablation {} random_inputs {} variants { name: \"a\" after: \"input\" }"));
  ExpectUsageError(place, "ablation wants a variant of the pipeline's last graph");
}

TEST(Sensitivity, EachLayerAlone) {
  const Workplace place = MakeWorkplace("sensitivity", Fast("sensitivity { samples: 8 min_time_ms: 1 }"));
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Layers alone, variant int8, batch 1, threads 1, 8 calibration images"));
  const Results results = ReadResults(place.out);
  const Results::Sensitivity& sensitivity = results.sensitivity();
  EXPECT_EQ(sensitivity.samples(), 8);
  EXPECT_EQ(sensitivity.left_out(), 0);
  EXPECT_LT(sensitivity.int8().snr_db(), sensitivity.fp32().snr_db());
  EXPECT_GT(sensitivity.int8().kl_divergence_bits(), 0);
  int alone = 0;
  for (const auto& group : sensitivity.groups()) {
    EXPECT_THAT(group.nodes(), ElementsAre(group.name()));
    EXPECT_TRUE(group.has_fp32()) << group.name() << group.why_not();
    EXPECT_TRUE(group.has_fp32_lost_ms());
    if (!group.has_int8()) continue;
    ++alone;
    EXPECT_GT(group.int8().snr_db(), sensitivity.int8().snr_db() - 3) << group.name() << ": one harms less than all";
    EXPECT_GE(group.int8().agreement(), 50);
  }
  EXPECT_GE(alone, 3) << "two convolutions and a linear";
  EXPECT_EQ(results.variants_size(), 2);
}

TEST(Sensitivity, GroupsAndABound) {
  const Workplace place = MakeWorkplace("groups", Fast("sensitivity { samples: 4 min_time_ms: 1 most: 2 }"));
  ASSERT_EQ(RunTiny(place).code, kOk);
  const Results::Sensitivity some = ReadResults(place.out).sensitivity();
  ASSERT_EQ(some.groups_size(), 2);
  EXPECT_GT(some.left_out(), 0);
  for (const auto& group : some.groups()) EXPECT_THAT(group.name(), HasSubstr("conv")) << "the most operations";

  const std::string network = R"(graph @g {
  param @w: f32[8,8] = seed(1)
  module @a.1 = linear(weight=@w)
  module @a.2 = linear(weight=@w)
  module @b.1 = linear(weight=@w)
  %x: f32[1,8] = placeholder
  %a.1: f32[1,8] = call_module @a.1(%x)
  %a.2: f32[1,8] = call_module @a.2(%a.1)
  %b.1: f32[1,8] = call_module @b.1(%a.2)
  output(%b.1)
})";
  const Workplace blocks = MakeIrWorkplace("blocks", network, Fast(R"(
    random_inputs { count: 8 }
    pipeline { steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
               steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } } }
    variants { name: "fp32" after: "input" } variants { name: "int8" }
    sensitivity { group_depth: 1 min_time_ms: 1 })"));
  const Outcome outcome = RunTiny(blocks);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Results::Sensitivity grouped = ReadResults(blocks.out).sensitivity();
  ASSERT_EQ(grouped.groups_size(), 2);
  EXPECT_EQ(grouped.groups(0).name(), "a");
  EXPECT_THAT(grouped.groups(0).nodes(), ElementsAre("a.1", "a.2"));
  EXPECT_EQ(grouped.groups(1).name(), "b");
  EXPECT_FALSE(grouped.int8().has_kl_divergence_bits()) << "no logits are known";
}

// What is found is a variant, and by its policy another run compiles the same.
TEST(Search, APolicyThatAnotherConfigTakes) {
  const std::string sensitivity = "sensitivity { samples: 4 min_time_ms: 1 }";
  const Workplace first = MakeWorkplace("search_all", Fast(sensitivity + "search { min_snr_db: 1 samples: 8 }"));
  Outcome outcome = RunTiny(first);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  Results::Search search = ReadResults(first.out).search();
  EXPECT_TRUE(search.met());
  EXPECT_EQ(search.kept_in_fp32_size(), 0);
  EXPECT_EQ(search.evaluations(), 1);
  EXPECT_EQ(search.verified_on(), "images of train: 16 to 23");
  const double int8_db = search.int8().network().snr_db();

  const Workplace place = MakeWorkplace(
      "search", Fast(sensitivity + "search { min_snr_db: " + std::to_string(int8_db + 2) + " samples: 8 }"));
  outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Mixed precision under min_snr_db: "), HasSubstr("found: mixed"),
                                 HasSubstr("within the budget at"), HasSubstr("policy: " + place.out)));
  const Results results = ReadResults(place.out);
  search = results.search();
  EXPECT_TRUE(search.met());
  EXPECT_FALSE(search.int8().within());
  EXPECT_TRUE(search.found().within());
  EXPECT_GE(search.found().network().snr_db(), int8_db + 2);
  EXPECT_GT(search.kept_in_fp32_size(), 0);
  EXPECT_EQ(search.trials_size(), search.evaluations());
  ASSERT_EQ(results.variants_size(), 3);
  const auto& mixed = results.variants(2);
  EXPECT_EQ(mixed.name(), "mixed");
  EXPECT_EQ(mixed.measurements_size(), 1);
  EXPECT_NE(mixed.logits_fingerprint(), results.variants(1).logits_fingerprint());

  const Workplace later = MakeWorkplace("policy", Fast("policy: \"" + place.out + "/policy.textproto\""));
  outcome = RunTiny(later);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_EQ(ReadResults(later.out).variants(1).logits_fingerprint(), mixed.logits_fingerprint());
}

TEST(Search, TheTimeIsABudgetToo) {
  // None, one, three and all five groups in FP32: whichever go first by the times of this run, the last is exact.
  const std::string rest = " samples: 4 variant: \"best\" evaluations: 4 } sensitivity { samples: 4 min_time_ms: 1 }";
  const Workplace wide = MakeWorkplace("search_wide", Fast("search { max_ms: 1000" + rest));
  ASSERT_EQ(RunTiny(wide).code, kOk);
  const Results found = ReadResults(wide.out);
  EXPECT_TRUE(found.search().met());
  EXPECT_GT(found.search().found().network().snr_db(), found.search().int8().network().snr_db());
  EXPECT_EQ(found.variants(2).name(), "best");

  const Workplace narrow = MakeWorkplace("search_narrow", Fast("search { max_ms: 0.000001" + rest));
  const Outcome outcome = RunTiny(narrow);
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("NOT within the budget"));
  EXPECT_THAT(outcome.err, HasSubstr("none of 1 networks is within max_ms"));
  EXPECT_FALSE(ReadResults(narrow.out).search().met());
}

TEST(Search, SaysWhatItWants) {
  ExpectUsageError(MakeWorkplace("no_budget", "search {}"), "search wants a budget: max_top1_drop");
  ExpectUsageError(MakeWorkplace("bits", "search { max_bits_per_byte_increase_percent: 1 }"), "dataset of kind text");
  ExpectUsageError(MakeWorkplace("taken", "search { min_snr_db: 1 variant: \"int8\" }"), "want a name of its own");
  ExpectUsageError(MakeWorkplace("negative", "search { max_top1_drop: -1 }"), "search.max_top1_drop is negative or NaN");
  ExpectUsageError(MakeWorkplace("nan", "search { min_snr_db: nan }"), "search.min_snr_db wants a finite number");
  ExpectUsageError(MakeWorkplace("no_policy", "policy: \"nowhere.textproto\""), "policy: ");
  const Workplace used = MakeWorkplace("all_used", Fast("search { min_snr_db: 1 } sensitivity { min_time_ms: 1 }"));
  Edit(used, "images: 16", "images: 40");
  ExpectUsageError(used, "all 40 images of train calibrate or evaluate");
}

}  // namespace
}  // namespace fuselage::harness
