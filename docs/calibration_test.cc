// The options that calibration.md shows are options, and the config that it names is a config.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "compiler/library.h"
#include "google/protobuf/text_format.h"
#include "harness/load_config.h"
#include "ir/testing/matchers.h"
#include "passes/quantize/observers.h"

namespace fuselage {
namespace {

std::string Contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(CalibrationGuideTest, EveryBlockIsQuantizeOptions) {
  const std::string guide = Contents("docs/calibration.md"), open = "```textproto\n";
  int blocks = 0;
  for (size_t at = guide.find(open); at != std::string::npos; at = guide.find(open, at)) {
    at += open.size();
    const std::string block = guide.substr(at, guide.find("```", at) - at);
    QuantizeOptions options;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(block, &options)) << block;
    EXPECT_OK(quantize::MakeObserver(options.observer(), options.activations()));
    ++blocks;
  }
  EXPECT_GT(blocks, 0);
}

TEST(CalibrationGuideTest, TheConfigIsSound) {
  const std::string path = "harness/configs/calibration.textproto";
  const auto config = harness::ParseConfig(Contents(path), path, compiler::BuiltIn().passes.OptionTypes());
  ASSERT_OK(config);
  EXPECT_OK(harness::ValidateConfig(*config, path));
}

}  // namespace
}  // namespace fuselage
