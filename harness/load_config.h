// A config file as a message, with errors that name file, line, column and the nearest right spelling.
#ifndef FUSELAGE_HARNESS_LOAD_CONFIG_H_
#define FUSELAGE_HARNESS_LOAD_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/files.h"
#include "harness/config.pb.h"
#include "harness/flags.h"

namespace fuselage::harness {

// Runs any model: what --model means without a config.
inline constexpr char kDefaultConfig[] = "harness/configs/default.textproto";

struct LoadedConfig {
  HarnessConfig config;
  std::string path;
  std::string name;  // The file's name without its extension.
};

// The file that a name means: a bare one ("resnet18.textproto") is looked for in the caller's directory, then in
// harness/configs of the workspace and of the runfiles. A name with a folder: SearchPath::Find.
std::string FindConfig(const std::string& name, const SearchPath& search);

// Into any message that has configs in it. `pass_options`: full names of the options messages that a pipeline may hold,
// for suggestions. All errors are usage errors.
absl::Status ParseTextproto(absl::string_view text, absl::string_view file,
                            const std::vector<std::string>& pass_options, google::protobuf::Message* message);

// Finds, parses and validates. `flags` are applied before the config is checked; a sequence leaves them to its members.
absl::StatusOr<LoadedConfig> LoadConfig(const std::string& name, const SearchPath& search,
                                        const std::vector<std::string>& pass_options, const Flags& flags = {});

// The configs of `sequence.config.sequence`, in order: each name is looked for beside the sequence's file, then as
// LoadConfig does. A sequence in a sequence, and two configs of one name, are errors.
absl::StatusOr<std::vector<LoadedConfig>> LoadSequence(const LoadedConfig& sequence, const SearchPath& search,
                                                       const std::vector<std::string>& pass_options,
                                                       const Flags& flags = {});

// Parses, applies the flags, and validates. All errors are usage errors.
absl::StatusOr<HarnessConfig> ParseConfig(absl::string_view text, absl::string_view file,
                                          const std::vector<std::string>& pass_options, const Flags& flags = {});

// What the message's types cannot say: required fields, ranges, unique names. Errors begin with "<file>: <field>".
absl::Status ValidateConfig(const HarnessConfig& config, absl::string_view file);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_LOAD_CONFIG_H_
