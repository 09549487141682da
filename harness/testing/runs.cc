#include "harness/testing/runs.h"

#include <fstream>
#include <sstream>

#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "harness/cli.h"

namespace fuselage::harness::testing {

Outcome RunWithArgs(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  const int code = RunCommand(args, {out, err, false});
  return {code, out.str(), err.str()};
}

Outcome RunTiny(const Workplace& place, std::vector<std::string> args) {
  args.insert(args.begin(), {"--config=" + place.config, "--out=" + place.out});
  return RunWithArgs(args);
}

Results ReadResults(const std::string& folder) {
  Results results;
  const auto text = ReadFile(folder + "/results.json");
  EXPECT_TRUE(text.ok()) << text.status();
  const auto parsed = google::protobuf::util::JsonStringToMessage(text.value_or("{}"), &results);
  EXPECT_TRUE(parsed.ok()) << parsed.ToString();
  return results;
}

void Overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace fuselage::harness::testing
