// A sweep's units: what one process does at a time, each a run of the harness.
#ifndef FUSELAGE_HARNESS_SWEEP_UNITS_H_
#define FUSELAGE_HARNESS_SWEEP_UNITS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/files.h"
#include "harness/config.pb.h"
#include "harness/sweep/sweep.pb.h"

namespace fuselage::harness::sweep {

struct Unit {
  std::vector<std::string> choices;  // One of each axis.
  HarnessConfig config;
  std::string name;  // "mobilenet_v2, entropy, shard 3 of 8"
  // What its result depends on: the config, the contents of the model, names and sizes of the data's files, and this
  // program. A folder's name, readable as far as the choices are.
  std::string key;
};

// Every choice of the first axis with every one of the second, and so on, then shards, the last varying fastest.
// Usage errors name `file` and the field; a config that is not valid is one of them.
absl::StatusOr<std::vector<Unit>> UnitsOf(const Sweep& sweep, const HarnessConfig& base, const std::string& file,
                                          const SearchPath& search);

// What `set` sets takes the place of what `config` has; lists as a whole.
void Override(const HarnessConfig& set, HarnessConfig* config);

}  // namespace fuselage::harness::sweep

#endif  // FUSELAGE_HARNESS_SWEEP_UNITS_H_
