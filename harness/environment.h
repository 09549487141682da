// What a measurement was made on.
#ifndef FUSELAGE_HARNESS_ENVIRONMENT_H_
#define FUSELAGE_HARNESS_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "harness/base/files.h"
#include "harness/results.pb.h"

namespace fuselage::harness {

Results::Environment DescribeEnvironment(const SearchPath& search);

// The CPUs that this process may run on.
int AvailableCores();

// The commit that a checkout's HEAD names, read from its .git; "unknown" where there is none.
std::string GitCommit(const std::string& workspace);

// Now, to the second: ISO 8601.
std::string UtcNow();

// VmHWM of /proc/self/status: the most memory that the whole process has held so far.
std::optional<int64_t> PeakRssBytes();

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_ENVIRONMENT_H_
