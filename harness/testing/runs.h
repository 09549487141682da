// Runs of the harness's command in a test, and what they leave behind.
#ifndef FUSELAGE_HARNESS_TESTING_RUNS_H_
#define FUSELAGE_HARNESS_TESTING_RUNS_H_

#include <string>
#include <vector>

#include "harness/results.pb.h"
#include "harness/testing/testing.h"

namespace fuselage::harness::testing {

struct Outcome {
  int code;  // Exit code.
  std::string out, err;
};

// The command with these arguments, on no terminal.
Outcome RunWithArgs(const std::vector<std::string>& args);
// The workplace's config, into its output folder.
Outcome RunTiny(const Workplace& place, std::vector<std::string> args = {});

// The results.json of a folder; a failure and an empty message where there is none.
Results ReadResults(const std::string& folder);

void Overwrite(const std::string& path, const std::string& bytes);

}  // namespace fuselage::harness::testing

#endif  // FUSELAGE_HARNESS_TESTING_RUNS_H_
