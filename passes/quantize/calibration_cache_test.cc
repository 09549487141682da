#include "passes/quantize/calibration_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "ir/testing/matchers.h"

namespace fuselage::quantize {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::HasSubstr;

class CalibrationCacheTest : public ::testing::Test {
 protected:
  CalibrationCacheTest() : folder_(::testing::TempDir() + "/a/b") { key_.set_data("\xff\0 any bytes"); }
  ~CalibrationCacheTest() override { std::filesystem::remove_all(::testing::TempDir() + "/a"); }

  CalibrationCache Cache(const std::vector<std::string>& nodes) const { return {folder_, key_, nodes}; }

  std::string folder_;
  CalibrationCacheFile::Key key_;
};

TEST_F(CalibrationCacheTest, GivesBackEveryBit) {
  const CalibrationCache cache = Cache({"a", "b", "c"});
  EXPECT_THAT(cache.Read(), StatusIs(absl::StatusCode::kNotFound, cache.path()));
  Calibration written;
  written.samples = 256;
  written.ranges = {{-1.0 / 3, 0.1}, {5e-324, 1e300}, {0, std::numeric_limits<float>::denorm_min()}};
  ASSERT_OK(cache.Write(written));
  ASSERT_OK_AND_ASSIGN(const Calibration read, cache.Read());
  EXPECT_EQ(read.samples, 256);
  ASSERT_EQ(read.ranges.size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read.ranges[i].min, written.ranges[i].min);
    EXPECT_EQ(read.ranges[i].max, written.ranges[i].max);
  }
}

TEST_F(CalibrationCacheTest, IsReadByPeople) {
  const CalibrationCache cache = Cache({"conv1"});
  ASSERT_OK(cache.Write({256, {{-0.5, 2.25}}}));
  std::stringstream text;
  text << std::ifstream(cache.path()).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("activations {\n  node: \"conv1\"\n  min: -0.5\n  max: 2.25\n}\n"));
}

TEST_F(CalibrationCacheTest, OneFileKnowsWhateverWasAskedFor) {
  const CalibrationCache a = Cache({"a"}), b = Cache({"b"}), both = Cache({"b", "a"});
  ASSERT_OK(a.Write({8, {{0, 1}}}));
  EXPECT_THAT(b.Read(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("has no range of %b")));
  EXPECT_THAT(both.Read(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("has no range of %b")));
  ASSERT_OK(b.Write({8, {{0, 2}}}));
  ASSERT_OK_AND_ASSIGN(const Calibration read, both.Read());
  EXPECT_EQ(read.samples, 8);
  ASSERT_EQ(read.ranges.size(), 2);
  EXPECT_EQ(read.ranges[0].max, 2);
  EXPECT_EQ(read.ranges[1].max, 1);
  ASSERT_OK(a.Read());
}

TEST_F(CalibrationCacheTest, AFileUnderAnotherNameIsAboutOtherData) {
  const CalibrationCache a = Cache({"a"});
  ASSERT_OK(a.Write({1, {{0, 1}}}));
  key_.set_graph("another");
  const CalibrationCache another = Cache({"a"});
  std::filesystem::copy_file(a.path(), another.path());
  EXPECT_THAT(another.Read(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("about other data")));
}

TEST_F(CalibrationCacheTest, RangesAreChecked) {
  const CalibrationCache cache = Cache({"a"});
  const double kInfinity = std::numeric_limits<double>::infinity();
  for (const Range range : {Range{1, 0}, Range{-kInfinity, 0}, Range{0, kInfinity}, Range{0, std::nan("")}}) {
    ASSERT_OK(cache.Write({1, {range}}));
    EXPECT_THAT(cache.Read(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("%a has no range")));
  }
  ASSERT_OK(cache.Write({0, {{0, 1}}}));
  EXPECT_THAT(cache.Read(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no samples")));
}

}  // namespace
}  // namespace fuselage::quantize
