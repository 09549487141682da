#include "passes/core/registry.h"

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ir/base/check.h"

namespace fuselage::passes {

void PassRegistry::RegisterFactory(const std::string& type, Factory factory) {
  const bool inserted = factories_.emplace(type, std::move(factory)).second;
  FUSELAGE_CHECK(inserted);
}

absl::StatusOr<std::unique_ptr<Pass>> PassRegistry::Create(const google::protobuf::Any& options,
                                                           const PassEnvironment& environment) const {
  const std::string& url = options.type_url();
  const std::string type = url.substr(url.rfind('/') + 1);
  const auto it = factories_.find(type);
  if (it == factories_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no pass has options of type '", type, "'; known: ", absl::StrJoin(OptionTypes(), ", ")));
  }
  return it->second(options, environment);
}

std::vector<std::string> PassRegistry::OptionTypes() const {
  std::vector<std::string> types;
  for (const auto& [type, factory] : factories_) types.push_back(type);
  return types;
}

}  // namespace fuselage::passes
