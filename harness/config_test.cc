// Flags and config files, right and wrong.
#include <filesystem>

#include "compiler/compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/flags.h"
#include "harness/load_config.h"
#include "kernels/core/isa.h"

namespace fuselage::harness {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FlagError(const std::vector<std::string>& args) {
  const auto flags = ParseFlags(args);
  EXPECT_EQ(ExitCodeOf(flags.status()), kUsage) << flags.status();
  return std::string(flags.status().message());
}

TEST(Flags, BothSpellings) {
  const auto flags = ParseFlags({"--config=a.textproto", "--limit", "100", "--threads=0", "--shape=x:1,3,8,8",
                                 "--shape", "y:1", "--output=a", "--output=b", "--constant=rate:16000",
                                 "--max_memory=2G", "--allow_nonfinite", "--isa=avx2"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->config, "a.textproto");
  EXPECT_EQ(flags->limit, 100);
  EXPECT_EQ(flags->threads, 0);
  EXPECT_FALSE(flags->batch.has_value());
  EXPECT_THAT(flags->shapes, ElementsAre("x:1,3,8,8", "y:1"));
  EXPECT_THAT(flags->outputs, ElementsAre("a", "b"));
  EXPECT_THAT(flags->constants, ElementsAre("rate:16000"));
  EXPECT_EQ(flags->max_memory_bytes, int64_t{2} << 30);
  EXPECT_TRUE(flags->allow_nonfinite);
  EXPECT_FALSE(flags->explain || flags->no_cache || flags->remeasure_peaks);
  EXPECT_EQ(flags->isa, "avx2");
}

TEST(Flags, IsaTakesEveryInstructionSet) {
  for (const kernels::Isa isa : kernels::AllIsas()) {
    const auto flags = ParseFlags({"--config=a", "--isa", kernels::IsaName(isa)});
    ASSERT_TRUE(flags.ok()) << flags.status();
    EXPECT_EQ(flags->isa, kernels::IsaName(isa));
  }
  EXPECT_THAT(FlagError({"--config=a", "--isa=avx"}), HasSubstr("one of scalar, avx2, avx_vnni, avx512_vnni, amx"));
}

TEST(Flags, ExplainIsACommandAndAFlag) {
  EXPECT_TRUE(ParseFlags({"explain", "--config=a"})->explain);
  EXPECT_TRUE(ParseFlags({"--config=a", "--explain"})->explain);
  EXPECT_THAT(FlagError({"explian", "--config=a"}), HasSubstr("unknown command explian; did you mean \"explain\"?"));
  for (const char* command : {"explain", "compile", "report", "compare", "merge", "diff", "sweep"}) {
    EXPECT_THAT(FlagError({"none"}), HasSubstr(command));
  }
  EXPECT_THAT(FlagError({"--config=a", "explain"}), HasSubstr("\"explain\" is not a flag"));
  EXPECT_THAT(FlagError({"explain"}), HasSubstr("--config=FILE"));
  EXPECT_THAT(FlagsHelp(), HasSubstr("explain --config=resnet18.textproto"));
}

TEST(Flags, CompileIsExplainWithAFile) {
  const auto flags = ParseFlags({"compile", "--config=a", "--out=b.fuse", "--pack=scalar", "--pack=avx2+avx_vnni"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_TRUE(flags->explain);
  EXPECT_EQ(flags->save_fuse, "b.fuse");
  EXPECT_EQ(flags->out, "");
  EXPECT_THAT(flags->pack, ElementsAre("scalar", "avx2+avx_vnni"));
  EXPECT_THAT(FlagError({"compile", "--config=a"}), HasSubstr("--out=FILE.fuse"));
  EXPECT_THAT(FlagError({"compile", "--config=a", "--out=b", "--pack=sse9"}), HasSubstr("--pack: unknown"));
}

TEST(Flags, Cache) {
  const auto flags = ParseFlags({"--config=a", "--no_cache", "--remeasure_peaks"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_TRUE(flags->no_cache);
  EXPECT_TRUE(flags->remeasure_peaks);
}

TEST(Flags, ChoicesByTime) {
  const auto flags = ParseFlags({"--config=a", "--tune_ms=50", "--replay=timings"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->tune_ms, 50);
  EXPECT_EQ(flags->replay, "timings");
  EXPECT_THAT(FlagError({"--config=a", "--tune_ms=0"}), HasSubstr("at least 1"));
}

TEST(Flags, MistakesAreNamed) {
  EXPECT_THAT(FlagError({"--config=a", "--bacth=1"}), HasSubstr("unknown flag --bacth; did you mean --batch?"));
  EXPECT_THAT(FlagError({"--config=a", "--xyzzyx=1"}), HasSubstr("--help"));
  EXPECT_THAT(FlagError({"a.textproto"}), HasSubstr("--config=a.textproto"));
  EXPECT_THAT(FlagError({}), AllOf(HasSubstr("--model=FILE"), HasSubstr("--config=FILE")));
  EXPECT_THAT(FlagError({"--config"}), HasSubstr("--config wants a value"));
  EXPECT_THAT(FlagError({"--config=a", "--limit=ten"}), HasSubstr("--limit=ten: want a whole number of at least 0"));
  EXPECT_THAT(FlagError({"--config=a", "--batch=0"}), HasSubstr("at least 1"));
  EXPECT_THAT(FlagError({"--config=a", "--threads=1025"}),
              HasSubstr("--threads=1025: want a whole number of at least 0 and at most 1024"));
  EXPECT_TRUE(ParseFlags({"--config=a", "--threads=1024"}).ok());
  EXPECT_THAT(FlagError({"--config=a", "--backend=cpuu"}), HasSubstr("did you mean \"cpu\"?"));
  EXPECT_THAT(FlagError({"--config=a", "--max_memory=9999999999G"}), HasSubstr("--max_memory"));
  EXPECT_THAT(FlagError({"--config=a", "--allow_nonfinite=1"}), HasSubstr("takes no value"));
}

TEST(Flags, OverrideTheConfig) {
  HarnessConfig config;
  config.add_variants()->set_isa("amx");
  config.add_variants();
  config.mutable_benchmark()->add_threads(1);
  config.mutable_benchmark()->add_threads(0);
  config.mutable_benchmark()->add_batches(16);
  config.mutable_evaluation()->set_limit(1000);
  Flags flags;
  ApplyFlags(flags, &config);
  EXPECT_EQ(config.benchmark().threads_size(), 2);
  EXPECT_FALSE(config.has_throughput() || config.has_preprocessing());
  EXPECT_EQ(config.variants(0).isa(), "amx");
  flags.isa = "scalar";
  flags.threads = 3;
  flags.batch = 4;
  flags.streams = 2;
  flags.pixels = true;
  flags.limit = 0;
  flags.model = "other.onnx";
  ApplyFlags(flags, &config);
  EXPECT_EQ(config.variants(1).isa(), "scalar");
  EXPECT_THAT(config.benchmark().threads(), ElementsAre(3));
  EXPECT_THAT(config.benchmark().batches(), ElementsAre(4));
  EXPECT_THAT(config.throughput().streams(), ElementsAre(1, 2));
  EXPECT_EQ(config.throughput().batch(), 4);
  EXPECT_EQ(config.preprocessing().input(), HarnessConfig::Preprocessing::PIXELS);
  EXPECT_EQ(config.evaluation().limit(), 0);
  EXPECT_EQ(config.model().path(), "other.onnx");
}

TEST(Flags, ImagesTakeThePlaceOfTheData) {
  HarnessConfig config;
  config.mutable_random_inputs()->set_seed(3);
  Flags flags = *ParseFlags({"--model=a.onnx", "--calibrate=photos"});
  ApplyFlags(flags, &config);
  EXPECT_FALSE(config.has_random_inputs());
  EXPECT_EQ(config.dataset().images().calibrate(), "photos");
  config.mutable_dataset()->mutable_cifar10()->set_path("data");
  flags = *ParseFlags({"--config=a", "--labels=val.txt"});
  ApplyFlags(flags, &config);
  EXPECT_EQ(config.dataset().images().labels(), "val.txt");
  EXPECT_EQ(config.dataset().images().calibrate(), "");
}

// Any message that is linked in may stand in the Any: which ones are passes is the registry's matter.
constexpr char kGood[] = R"(model { path: "a.onnx" }
dataset { cifar10 { path: "data" } }
pipeline { steps { pass { [type.googleapis.com/fuselage.HarnessConfig.Gates] {} } } }
variants { name: "fp32" after: "fusion" }
variants { name: "int8" }
)";

std::string ConfigError(const std::string& text) {
  const auto config = ParseConfig(text, "my.textproto", {"fuselage.ConvBnOptions", "fuselage.FusionOptions"});
  EXPECT_EQ(ExitCodeOf(config.status()), kUsage) << config.status();
  return std::string(config.status().message());
}

TEST(Config, Parses) {
  const auto config = ParseConfig(kGood, "my.textproto", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->variants(0).after(), "fusion");
}

TEST(Config, AMisspeltFieldHasItsPlaceAndTheNearestName) {
  EXPECT_THAT(ConfigError(std::string(kGood) + "benchmark {\n  repetition: 3\n}\n"),
              AllOf(HasSubstr("my.textproto:7:13: "), HasSubstr("no field named \"repetition\""),
                    HasSubstr("did you mean \"repetitions\"?")));
  EXPECT_THAT(ConfigError("modle { path: \"a\" }"), AllOf(HasSubstr("my.textproto:1:7: "), HasSubstr("\"model\"")));
}

TEST(Config, AMisspeltPassHasTheNearestName) {
  EXPECT_THAT(ConfigError("pipeline { steps { pass { [type.googleapis.com/fuselage.ConvBnOption] {} } } }"),
              AllOf(HasSubstr("my.textproto:1:"), HasSubstr("did you mean \"fuselage.ConvBnOptions\"?")));
}

TEST(Config, SyntaxErrorsHaveTheirPlace) {
  EXPECT_THAT(ConfigError("model {\n  path: 3\n}"), HasSubstr("my.textproto:2:9: "));
  EXPECT_THAT(ConfigError("model {\n"), HasSubstr("my.textproto:2:1: "));
  EXPECT_THAT(ConfigError("calibration { split: TRIAN }"), HasSubstr("my.textproto:1:28: "));
}

TEST(Config, ValuesAreChecked) {
  const auto with = [](const std::string& more) { return std::string(kGood) + more; };
  EXPECT_THAT(ConfigError(""), HasSubstr("my.textproto: model.path is empty"));
  EXPECT_THAT(ConfigError("model { path: \"a\" }"), HasSubstr("pipeline, variants and print_graphs is empty"));
  EXPECT_THAT(ConfigError("model { path: \"a\" } dataset {}"),
              HasSubstr("dataset is empty, want one of fashion_mnist"));
  EXPECT_THAT(ConfigError("model { path: \"a\" } dataset { cifar10 {} }"), HasSubstr("path is empty, want a folder"));
  EXPECT_THAT(ConfigError(with("variants { name: \"int8\" }")), HasSubstr("variants[2].name is int8"));
  EXPECT_THAT(ConfigError(with("variants {}")), HasSubstr("variants[2].name is empty"));
  EXPECT_THAT(ConfigError(with("variants { name: \"x\" backend: \"gpu\" }")), HasSubstr("variants[2].backend"));
  EXPECT_THAT(ConfigError(with("variants { name: \"x\" precision: \"half\" }")),
              HasSubstr("variants[2].precision is \"half\", want fp16"));
  EXPECT_THAT(ConfigError(with("variants { name: \"x\" pipeline {} }")),
              HasSubstr("variants[2].pipeline is empty, want steps, or no pipeline"));
  EXPECT_THAT(ConfigError(with("benchmark { batches: 0 }")), HasSubstr("benchmark.batches is 0, want at least 1"));
  EXPECT_THAT(ConfigError(with("benchmark { threads: -1 }")), HasSubstr("benchmark.threads is -1"));
  EXPECT_THAT(ConfigError(with("benchmark { threads: 1025 }")),
              HasSubstr("benchmark.threads is 1025, want at most 1024"));
  EXPECT_THAT(ConfigError(with("calibration { parts: -1 }")), HasSubstr("calibration.parts is -1"));
  EXPECT_THAT(ConfigError(with("evaluation { limit: -5 }")), HasSubstr("evaluation.limit is -5"));
  EXPECT_THAT(ConfigError(with("benchmark { min_time_ms: nan }")), HasSubstr("min_time_ms"));
  EXPECT_THAT(ConfigError(with("throughput { streams: 1025 }")), HasSubstr("throughput.streams is 1025"));
  EXPECT_THAT(ConfigError(with("throughput { threads: -1 }")), HasSubstr("throughput.threads is -1"));
  EXPECT_THAT(ConfigError(with("throughput { load_percent: 0 }")),
              HasSubstr("throughput.load_percent is 0, want more"));
  EXPECT_THAT(ConfigError(with("throughput { load_percent: nan }")), HasSubstr("throughput.load_percent is nan"));
  EXPECT_THAT(ConfigError(with("throughput { seconds: -2 }")), HasSubstr("throughput.seconds is negative or NaN"));
}

TEST(Config, WithoutADatasetInputsAreRandom) {
  const std::string graphs = "model { path: \"a.ir\" } print_graphs: true ";
  EXPECT_TRUE(ParseConfig(graphs, "my.textproto", {}).ok());
  EXPECT_TRUE(ParseConfig(graphs + "random_inputs { seed: 3 count: 4 }", "my.textproto", {}).ok());
  EXPECT_THAT(ConfigError(graphs + "random_inputs { count: -1 }"), HasSubstr("random_inputs.count is negative"));
  EXPECT_THAT(ConfigError(graphs + "gates { min_top1: 90 }"), HasSubstr("without them there is no accuracy"));
  EXPECT_THAT(ConfigError(graphs + "gates { max_top1_drop: 1 }"), HasSubstr("without them there is no accuracy"));
  EXPECT_THAT(ConfigError(graphs + "preprocessing { mean: 1 }"),
              HasSubstr("preprocessing wants a dataset or --calibrate"));
  EXPECT_THAT(ConfigError(graphs + "random_inputs {} inputs: \"x.npz\""),
              HasSubstr("inputs and random_inputs: want one of the two"));
  EXPECT_THAT(ConfigError(std::string(kGood) + "inputs: \"x.npz\""), HasSubstr("want save_outputs"));
  EXPECT_THAT(ConfigError(std::string(kGood) + "random_inputs {}"), HasSubstr("want one of the two"));
}

TEST(Config, BitsAreOfATextAlone) {
  const std::string text = "model { path: \"a.ir\" } print_graphs: true dataset { text { path: \"t\" window: 8 ";
  EXPECT_THAT(ConfigError(text + "} }"), HasSubstr("dataset.text.test_bytes is below 1"));
  EXPECT_TRUE(ParseConfig(text + "test_bytes: 9 } } gates { max_bits_per_byte: 2 }", "my", {}).ok());
  EXPECT_THAT(ConfigError(text + "test_bytes: 9 } } gates { min_top1: 1 }"), HasSubstr("want a dataset with labels"));
  EXPECT_THAT(ConfigError(std::string(kGood) + "gates { max_bits_per_byte_increase_percent: 2 }"),
              HasSubstr("want a dataset of kind text"));
}

TEST(Config, GatesOfOneVariant) {
  const std::string text = "model { path: \"a.ir\" } ";
  EXPECT_TRUE(
      ParseConfig(text + "variants { name: \"a\" } variants { name: \"b\" gates { min_snr_db: 3 } }", "my", {}).ok());
  EXPECT_THAT(ConfigError(text + "variants { name: \"a\" gates { min_top1: 1 } }"),
              HasSubstr("my.textproto: variants[0].gates.min_top1 and max_top1_drop want a dataset with labels"));
  EXPECT_THAT(ConfigError(text + "variants { name: \"a\" gates { min_snr_db: 3 } }"),
              HasSubstr("variants[0].gates hold it to the baseline, which it is"));
  EXPECT_THAT(ConfigError(text + "variants { name: \"a\" gates { max_abs_error: 1 } }"),
              HasSubstr("variants[0].gates.max_abs_error is of passes, want it in the run's gates"));
}

TEST(Config, FlagsComeBeforeTheCheck) {
  const std::string graphs = "print_graphs: true ";
  Flags flags;
  flags.model = "a.onnx";
  const auto config = ParseConfig(graphs, "my.textproto", {}, flags);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model().path(), "a.onnx");
  EXPECT_THAT(ConfigError(graphs), HasSubstr("model.path is empty, want an .onnx or .ir file, here or by --model"));
  EXPECT_FALSE(ParseConfig(graphs + "preprocessing { mean: 1 }", "my.textproto", {}, flags).ok());
  flags.calibrate = "photos";
  EXPECT_TRUE(ParseConfig(graphs + "preprocessing { mean: 1 }", "my.textproto", {}, flags).ok());
  EXPECT_TRUE(ParseConfig("sequence: \"a.textproto\"", "my.textproto", {}, flags).ok()) << "its members take the flags";
}

TEST(Config, Images) {
  const std::string graphs = "model { path: \"a.ir\" } print_graphs: true ";
  EXPECT_THAT(ConfigError(graphs + "dataset { images {} }"), HasSubstr("want calibrate, labels or both"));
  EXPECT_THAT(ConfigError(graphs + "dataset { images { calibrate: \"a\" } } gates { min_top1: 1 }"),
              HasSubstr("want a dataset with labels"));
  EXPECT_TRUE(ParseConfig(graphs + "dataset { images { labels: \"a\" } } gates { min_top1: 1 }", "my", {}).ok());
}

TEST(Config, ASequenceHoldsNamesAlone) {
  EXPECT_TRUE(ParseConfig("title: \"all\" sequence: \"a.textproto\"", "my.textproto", {}).ok());
  EXPECT_THAT(ConfigError("sequence: \"a.textproto\" print_graphs: true"),
              HasSubstr("my.textproto: sequence: want nothing beside it but a title"));
}

TEST(Config, ASequenceIsLookedForBesideItsFile) {
  SearchPath search;
  search.caller = ::testing::TempDir() + "/sequence_caller";
  search.runfiles = ::testing::TempDir() + "/sequence_runfiles";
  const std::string folder = search.caller + "/own", shipped = search.runfiles + "/harness/configs";
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(shipped);
  const std::string config = "model { path: \"a.ir\" } print_graphs: true";
  for (const std::string& file : {folder + "/one.textproto", shipped + "/one.textproto", shipped + "/two.textproto"}) {
    ASSERT_TRUE(WriteFileAtomic(file, config).ok());
  }
  const auto sequence = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomic(folder + "/all.textproto", text).ok());
    const auto loaded = LoadConfig("own/all.textproto", search, {});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return LoadSequence(*loaded, search, {});
  };
  const auto members = sequence("sequence: [\"one.textproto\", \"two.textproto\"]");
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->size(), 2);
  EXPECT_EQ((*members)[0].path, folder + "/one.textproto");
  EXPECT_EQ((*members)[1].path, shipped + "/two.textproto");
  EXPECT_EQ((*members)[1].name, "two");

  const auto error = [&](const std::string& text) {
    const auto failed = sequence(text);
    EXPECT_EQ(ExitCodeOf(failed.status()), kUsage) << failed.status();
    return std::string(failed.status().message());
  };
  EXPECT_THAT(error("sequence: \"tow.textproto\""),
              AllOf(HasSubstr("own/all.textproto: sequence: "), HasSubstr("did you mean \"two.textproto\"?")));
  EXPECT_THAT(error("sequence: \"all.textproto\""), HasSubstr("all.textproto is a sequence itself"));
  EXPECT_THAT(error("sequence: [\"two.textproto\", \"two.textproto\"]"), HasSubstr("two configs are named two"));
}

TEST(Config, ABareNameIsTheCallersThenTheTrees) {
  SearchPath search;
  search.caller = ::testing::TempDir() + "/config_caller";
  search.runfiles = ::testing::TempDir() + "/config_runfiles";
  std::filesystem::create_directories(search.caller);
  std::filesystem::create_directories(search.runfiles + "/harness/configs");
  const std::string shipped = search.runfiles + "/harness/configs/resnet18.textproto";
  ASSERT_TRUE(WriteFileAtomic(shipped, kGood).ok());
  EXPECT_EQ(LoadConfig("resnet18.textproto", search, {})->path, shipped);
  EXPECT_EQ(LoadConfig("resnet18.textproto", search, {})->name, "resnet18");
  const std::string own = search.caller + "/resnet18.textproto";
  ASSERT_TRUE(WriteFileAtomic(own, kGood).ok());
  EXPECT_EQ(LoadConfig("resnet18.textproto", search, {})->path, own);

  const auto missing = LoadConfig("resnet81.textproto", search, {});
  EXPECT_EQ(ExitCodeOf(missing.status()), kUsage);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("did you mean \"resnet18.textproto\"?"));
}

// One pipeline, which a C++ program gets by default and everybody else can read.
TEST(Configs, TheDefaultIsTheCompilersPipeline) {
  Flags flags;
  flags.model = "any.onnx";
  const auto loaded =
      LoadConfig("default.textproto", SearchPath::FromEnvironment(), compiler::BuiltIn().passes.OptionTypes(), flags);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.pipeline().DebugString(), DefaultPipeline().DebugString());
}

}  // namespace
}  // namespace fuselage::harness
