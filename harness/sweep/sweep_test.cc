#include "harness/sweep/sweep.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/report/json.h"
#include "harness/sweep/plan.h"
#include "harness/sweep/units.h"
#include "harness/testing/runs.h"
#include "harness/testing/testing.h"
#include "ir/base/claim.h"
#include "ir/base/status.h"

namespace fuselage::harness::sweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

std::string Folder(const std::string& name) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/", name);
  EXPECT_TRUE(MakeWritableFolder(folder).ok());
  return folder;
}

TEST(OverrideTest, WhatIsSetTakesThePlace) {
  auto config = Parsed<HarnessConfig>(R"(title: "old" model { path: "a" shapes: "x:1" }
    benchmark { batches: [1, 4] repetitions: 3 } dataset { fashion_mnist {} })");
  Override(Parsed<HarnessConfig>(R"(model { path: "b" } benchmark { batches: 16 } dataset { cifar10 { path: "c" } })"),
           &config);
  EXPECT_EQ(config.title(), "old");
  EXPECT_EQ(config.model().path(), "b");
  EXPECT_THAT(config.model().shapes(), ElementsAre("x:1"));
  EXPECT_THAT(config.benchmark().batches(), ElementsAre(16));
  EXPECT_EQ(config.benchmark().repetitions(), 3);
  EXPECT_TRUE(config.dataset().has_cifar10());
}

// A config that is valid, of a model that is a file.
struct Base {
  std::string model;
  HarnessConfig config;
};
Base MakeBase(const std::string& name) {
  Base base;
  base.model = Folder(name) + "/model.ir";
  std::ofstream(base.model) << "graph";
  base.config = Parsed<HarnessConfig>(absl::StrCat("model { path: '", base.model, "' } print_graphs: true"));
  return base;
}

absl::StatusOr<std::vector<Unit>> Units(const Base& base, const std::string& sweep) {
  return UnitsOf(Parsed<Sweep>(sweep), base.config, "my.textproto", SearchPath());
}

constexpr char kTwoAxes[] = R"(
  axes { choices { name: "a" set { title: "A" } } choices { name: "b" set { title: "B" } } }
  axes { choices { name: "one" } choices { name: "two" set { print_graphs: false variants { name: "v" } } } })";

TEST(UnitsTest, AreTheProduct) {
  const auto units = Units(MakeBase("product"), absl::StrCat(kTwoAxes, "shards: 2"));
  ASSERT_TRUE(units.ok()) << units.status();
  std::vector<std::string> names;
  std::set<std::string> keys;
  for (const Unit& unit : *units) {
    names.push_back(unit.name);
    keys.insert(unit.key);
  }
  EXPECT_THAT(names, ElementsAre("a, one, shard 1 of 2", "a, one, shard 2 of 2", "a, two, shard 1 of 2",
                                 "a, two, shard 2 of 2", "b, one, shard 1 of 2", "b, one, shard 2 of 2",
                                 "b, two, shard 1 of 2", "b, two, shard 2 of 2"));
  EXPECT_EQ(keys.size(), units->size());
  EXPECT_EQ((*units)[7].config.title(), "B");
  EXPECT_EQ((*units)[7].config.variants(0).name(), "v");
  EXPECT_EQ((*units)[7].config.evaluation().shard(), 1);
  EXPECT_EQ((*units)[7].config.evaluation().shards(), 2);
}

TEST(UnitsTest, KeysAreOfTheContents) {
  const Base base = MakeBase("contents");
  const auto before = Units(base, kTwoAxes), again = Units(base, kTwoAxes);
  std::ofstream(base.model) << "another graph";
  const auto other_model = Units(base, kTwoAxes);
  std::ofstream(base.model.substr(0, base.model.size() - 2) + "safetensors") << "weights";
  const auto other_weights = Units(base, kTwoAxes);
  ASSERT_TRUE(before.ok() && again.ok() && other_model.ok() && other_weights.ok());
  EXPECT_EQ((*before)[0].key, (*again)[0].key);
  EXPECT_NE((*before)[0].key, (*other_model)[0].key);
  EXPECT_NE((*other_model)[0].key, (*other_weights)[0].key);
  EXPECT_THAT((*before)[0].key, HasSubstr("a-one-"));
}

TEST(UnitsTest, MistakesAreNamed) {
  const Base base = MakeBase("mistakes");
  const auto error = [&](const std::string& sweep) {
    const auto units = Units(base, sweep);
    EXPECT_TRUE(IsUsageError(units.status())) << sweep;
    return std::string(units.status().message());
  };
  EXPECT_EQ(error("axes {}"), "my.textproto: axes[0].choices is empty, want one");
  EXPECT_EQ(error("axes { choices {} }"), "my.textproto: axes[0].choices: a name is empty");
  EXPECT_EQ(error("axes { choices { name: 'a' } choices { name: 'a' } }"),
            "my.textproto: axes[0].choices: two are named a");
  EXPECT_EQ(error("shards: -1"), "my.textproto: shards is -1, want at least 0");
  EXPECT_EQ(error("shards: 2 latency: true"), "my.textproto: latency wants no shards: each would be timed");
  EXPECT_EQ(error("shards: 2000000000"), "my.textproto: choices and shards make more than 1048576 units");
  const std::string save = " set { save_outputs: 'y.npz' } } ";
  EXPECT_EQ(error(absl::StrCat("axes { choices { name: 'a'", save, "choices { name: 'b'", save, "}")),
            "my.textproto: b: y.npz is saved by two units, want one");
  EXPECT_THAT(error("axes { choices { name: 'a' set { evaluation { limit: -1 } } } }"),
              HasSubstr("my.textproto: a: evaluation.limit is -1"));
}

// So many units without a config: the fake below needs none.
std::vector<Unit> Numbered(int count) {
  std::vector<Unit> units(count);
  for (int i = 0; i < count; ++i) {
    units[i].choices = {absl::StrCat("choice ", i / 2)};
    units[i].name = units[i].key = absl::StrCat("unit", i);
  }
  return units;
}

// A run whose result is known beforehand: unit i has i + 1 images, of which one is right.
absl::Status Fake(const Unit& unit, const std::string& folder) {
  int number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(unit.name.substr(4), &number));
  Results results;
  results.set_status("complete");
  auto* variant = results.add_variants();
  variant->set_name("int8");
  variant->set_images(number + 1);
  variant->set_top1(100.0 / (number + 1));
  variant->set_logits_fingerprint("f");
  variant->add_layers();
  EXPECT_TRUE(MakeWritableFolder(folder).ok());
  return WriteFileAtomic(folder + "/results.json", report::ToJson(results));
}

SweepOptions Options(const std::string& folder) {
  SweepOptions options;
  options.folder = folder;
  options.progress = [](const std::string&) {};
  return options;
}

std::string Bytes(const std::string& folder) {
  const auto bytes = ReadFile(folder + "/sweep.json");
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

TEST(RunUnitsTest, ShardsAreOneRow) {
  const auto results = RunUnits(Numbered(6), Options(Folder("rows")), Fake);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->rows_size(), 3);
  EXPECT_EQ(results->failures_size(), 0);
  const auto& last = results->rows(2);
  EXPECT_THAT(last.choices(), ElementsAre("choice 2"));
  EXPECT_EQ(last.variants(0).images(), 5 + 6);
  EXPECT_EQ(last.variants(0).top1(), 100 * 2.0 / 11);
  EXPECT_EQ(last.variants(0).layers_size(), 0);
  EXPECT_EQ(last.variants(0).logits_fingerprint(), "");
  EXPECT_THAT(ToText(*results), HasSubstr("choice 2"));
}

TEST(RunUnitsTest, WhatIsDoneIsNotRunAgain) {
  const std::string folder = Folder("resume");
  ASSERT_TRUE(RunUnits(Numbered(4), Options(folder), Fake).ok());
  const std::string bytes = Bytes(folder);
  int ran = 0;
  const auto count = [&](const Unit& unit, const std::string& path) {
    ++ran;
    return Fake(unit, path);
  };
  ASSERT_TRUE(RunUnits(Numbered(4), Options(folder), count).ok());
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(Bytes(folder), bytes);
  ASSERT_TRUE(RunUnits(Numbered(6), Options(folder), count).ok());
  EXPECT_EQ(ran, 2);
}

TEST(RunUnitsTest, FailuresAreRetriedThenNamed) {
  std::map<std::string, int> ran;
  const auto fails = [&](const Unit& unit, const std::string& folder) {
    const int attempt = ++ran[unit.name];
    if (unit.name == "unit1" || (unit.name == "unit2" && attempt == 1)) return absl::InternalError("bad\nluck");
    return Fake(unit, folder);
  };
  const std::string folder = Folder("failures");
  const auto results = RunUnits(Numbered(4), Options(folder), fails);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(ran["unit1"], 2);
  EXPECT_EQ(ran["unit2"], 2);
  ASSERT_EQ(results->failures_size(), 1);
  EXPECT_EQ(results->failures(0).unit(), "unit1");
  EXPECT_EQ(results->failures(0).error(), "bad; luck");
  ASSERT_EQ(results->rows_size(), 1) << "the row of unit0 and unit1 has no figures";
  EXPECT_THAT(results->rows(0).choices(), ElementsAre("choice 1"));
  EXPECT_THAT(ToText(*results), HasSubstr("failed: unit1: bad; luck"));
}

// Four processes, of which one is killed while it runs a unit: everything is done, that unit alone twice, and the
// result has the bytes of one process's.
TEST(RunUnitsTest, ADeadProcessCostsItsUnitOnly) {
  const std::string alone = Folder("alone"), together = Folder("together");
  const std::vector<Unit> units = Numbered(24);
  ASSERT_TRUE(RunUnits(units, Options(alone), Fake).ok());

  std::vector<pid_t> children;
  for (int rank = 0; rank < 4; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      SweepOptions options = Options(together);
      options.first = rank * 6;
      const auto logged = [&](const Unit& unit, const std::string& folder) {
        std::ofstream(together + "/log", std::ios::app) << absl::StrCat(unit.name, "\n") << std::flush;
        if (rank == 3) raise(SIGKILL);  // In the middle of its first.
        usleep(1000);
        return Fake(unit, folder);
      };
      const auto results = RunUnits(units, options, logged);
      _exit(results.ok() && results->failures().empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (int rank = 0; rank < 4; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[rank], &status, 0), children[rank]);
    if (rank == 3) {
      EXPECT_TRUE(WIFSIGNALED(status)) << status;
    } else {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank << ": " << status;
    }
  }
  EXPECT_EQ(Bytes(together), Bytes(alone));
  std::map<std::string, int> ran;
  const auto log = ReadFile(together + "/log");
  ASSERT_TRUE(log.ok());
  for (const auto& line : absl::StrSplit(*log, '\n', absl::SkipEmpty())) ++ran[std::string(line)];
  EXPECT_EQ(ran.size(), units.size());
  EXPECT_EQ(std::count_if(ran.begin(), ran.end(), [](const auto& entry) { return entry.second == 2; }), 1);
  EXPECT_EQ(std::count_if(ran.begin(), ran.end(), [](const auto& entry) { return entry.second > 2; }), 0);
}

TEST(RunUnitsTest, AUnitThatKillsIsGivenUp) {
  const std::string folder = Folder("killer");
  int deaths = 0;
  for (bool done = false; !done && deaths < 20;) {
    const pid_t child = fork();
    if (child == 0) {
      const auto results = RunUnits(Numbered(2), Options(folder), [](const Unit& unit, const std::string& path) {
        if (unit.name == "unit1") raise(SIGKILL);
        return Fake(unit, path);
      });
      _exit(results.ok() && results->failures_size() == 1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    done = WIFEXITED(status);
    if (done) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
    }
    deaths += !done;
  }
  EXPECT_EQ(deaths, 5);
  EXPECT_THAT(Bytes(folder), HasSubstr("its process ended in the middle"));
}

TEST(RankTest, OfWhateverStartedTheProcess) {
  EXPECT_EQ(RankOfProcess().ranks, 1);
  setenv("SLURM_PROCID", "5", 1);
  setenv("SLURM_NTASKS", "8", 1);
  EXPECT_EQ(RankOfProcess().rank, 5);
  EXPECT_EQ(RankOfProcess().ranks, 8);
  unsetenv("SLURM_PROCID");
  unsetenv("SLURM_NTASKS");
}

// The harness's own runs: all shards together are the whole.
TEST(SweepCommandTest, ShardsMakeTheWhole) {
  testing::UseFixedPeaks();
  const testing::Workplace place =
      testing::MakeWorkplace("sweep", "benchmark { batches: 1 threads: 1 repetitions: 2 min_time_ms: 1 }");
  const testing::Outcome whole = testing::RunTiny(place);
  ASSERT_EQ(whole.code, kOk) << whole.err;
  const Results expected = testing::ReadResults(place.out);
  const std::string file = place.folder + "/sweep.textproto";
  testing::Overwrite(file, R"(config: "tiny.textproto" shards: 5
    axes { choices { name: "few" set { evaluation { limit: 10 } } } choices { name: "all" } })");
  const testing::Outcome sweep =
      testing::RunWithArgs({"sweep", "--config=" + file, "--out=" + place.folder + "/sweep"});
  ASSERT_EQ(sweep.code, kOk) << sweep.err;
  EXPECT_THAT(sweep.err, HasSubstr("few, shard 5 of 5: "));
  EXPECT_THAT(sweep.out, AllOf(HasSubstr("top-1"), HasSubstr("/sweep.json")));
  SweepResults results;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(Bytes(place.folder + "/sweep"), &results).ok());
  ASSERT_EQ(results.rows_size(), 2);
  ASSERT_EQ(results.rows(1).variants_size(), expected.variants_size());
  for (int i = 0; i < expected.variants_size(); ++i) {
    const auto &whole_one = expected.variants(i), &merged = results.rows(1).variants(i);
    EXPECT_EQ(merged.images(), whole_one.images());
    EXPECT_EQ(merged.top1(), whole_one.top1());
    EXPECT_EQ(merged.top5(), whole_one.top5());
    EXPECT_EQ(merged.agreement_with_fp32(), whole_one.agreement_with_fp32());
    EXPECT_EQ(results.rows(0).variants(i).images(), 10);
  }
}

// The files of calibration in the cache, by path.
std::map<std::string, std::string> Calibrations(bool parts) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(CacheFolder())) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    const bool is_part = absl::StartsWith(name, "calibration-part-");
    if (!absl::StartsWith(name, "calibration-") || !absl::EndsWith(name, ".textproto") || is_part != parts) continue;
    files[path] = ReadFile(path).value_or("");
  }
  return files;
}

// One of four ranks that run a sweep.
pid_t StartRank(int rank, const std::string& file, const std::string& out) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("SLURM_PROCID", absl::StrCat(rank).c_str(), 1);
    setenv("SLURM_NTASKS", "4", 1);
    const testing::Outcome outcome = testing::RunWithArgs({"sweep", "--config=" + file, "--out=" + out});
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    _exit(outcome.code);
  }
  return child;
}

// Ranks share a calibration of eight parts. One of them is killed when it has seven and waits for the last, which this
// test holds: the others keep the seven, and all is as if one process had calibrated at once.
TEST(SweepCommandTest, RanksShareACalibration) {
  const testing::Workplace place = testing::MakeWorkplace("sweep_calibration");
  const auto text = ReadFile(place.config);
  ASSERT_TRUE(text.ok());
  testing::Overwrite(place.config,
                     absl::StrReplaceAll(*text, {{"QuantizeOptions] {}", "QuantizeOptions] { observer { mse {} } }"}}));
  const auto sweep_of = [&](int parts) {
    const std::string path = absl::StrCat(place.folder, "/parts", parts, ".textproto");
    testing::Overwrite(path, absl::StrCat(R"(config: "tiny.textproto" shards: 4
      axes { choices { name: "all" set { calibration { parts: )",
                                          parts, " } } } }"));
    return path;
  };
  const std::string one_part = sweep_of(1), eight_parts = sweep_of(8);
  const auto wait = [](pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  };
  const std::string whole = place.folder + "/whole", parts = place.folder + "/parts", killed = place.folder + "/killed";

  testing::UseFixedPeaks();
  ASSERT_EQ(wait(StartRank(0, one_part, whole)), 0);
  const std::string expected = Bytes(whole);
  const auto ranges = Calibrations(/*parts=*/false);
  EXPECT_EQ(ranges.size(), 1);
  EXPECT_TRUE(Calibrations(/*parts=*/true).empty());

  testing::UseFixedPeaks();
  ASSERT_EQ(wait(StartRank(0, eight_parts, parts)), 0);
  EXPECT_EQ(Bytes(parts), expected);
  EXPECT_EQ(Calibrations(/*parts=*/false), ranges);
  const auto all = Calibrations(/*parts=*/true);
  ASSERT_EQ(all.size(), 8);

  testing::UseFixedPeaks();
  auto claim = Claim::Try(all.begin()->first + ".claim");
  ASSERT_TRUE(claim.ok()) << claim.status();
  const pid_t first = StartRank(0, eight_parts, killed);
  while (Calibrations(/*parts=*/true).size() < 7 && waitpid(first, nullptr, WNOHANG) == 0) usleep(1000);
  kill(first, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait(first)));
  claim->reset();
  std::map<std::string, std::filesystem::file_time_type> written;
  for (const auto& [path, bytes] : Calibrations(/*parts=*/true)) written[path] = std::filesystem::last_write_time(path);
  EXPECT_EQ(written.size(), 7);
  EXPECT_TRUE(Calibrations(/*parts=*/false).empty());
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(StartRank(rank, eight_parts, killed));
  for (const pid_t rank : ranks) EXPECT_EQ(wait(rank), 0);
  EXPECT_EQ(Bytes(killed), expected);
  EXPECT_EQ(Calibrations(/*parts=*/false), ranges);
  EXPECT_EQ(Calibrations(/*parts=*/true), all);
  for (const auto& [path, time] : written) EXPECT_EQ(std::filesystem::last_write_time(path), time) << path;
}

TEST(SweepCommandTest, MistakesAreUsageErrors) {
  const testing::Workplace place = testing::MakeWorkplace("sweep_mistakes");
  const std::string file = place.folder + "/sweep.textproto";
  const auto error = [&](const std::string& text) {
    testing::Overwrite(file, text);
    const testing::Outcome outcome = testing::RunWithArgs({"sweep", "--config=" + file});
    EXPECT_EQ(outcome.code, kUsage) << text;
    return outcome.err;
  };
  EXPECT_THAT(error("shards: 2"), HasSubstr("sweep.textproto: config is empty"));
  EXPECT_THAT(error("confg: 'tiny.textproto'"), HasSubstr("did you mean \"config\"?"));
  EXPECT_THAT(error("config: 'nothing.textproto'"), HasSubstr("nothing.textproto"));
  const testing::Outcome outcome = testing::RunWithArgs({"sweep"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--config"));
}

}  // namespace
}  // namespace fuselage::harness::sweep
