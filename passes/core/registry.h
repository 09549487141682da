// PassRegistry: which options message makes which pass. Each pass folder exports Register(PassRegistry&); the list in
// passes/BUILD generates RegisterAll.
//
//   void Register(passes::PassRegistry& registry) {
//     registry.Register<ConvBnOptions>([](const ConvBnOptions& options, const passes::PassEnvironment&) {
//       return std::make_unique<ConvBn>(options);
//     });
//   }
#ifndef FUSELAGE_PASSES_CORE_REGISTRY_H_
#define FUSELAGE_PASSES_CORE_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/any.pb.h"
#include "passes/core/pass.h"

namespace fuselage::passes {

class PassRegistry {
 public:
  PassRegistry() = default;
  PassRegistry(const PassRegistry&) = delete;
  PassRegistry& operator=(const PassRegistry&) = delete;

  // `make` returns unique_ptr<SomePass> or StatusOr<unique_ptr<Pass>>. Aborts on a message type that is taken.
  template <typename Options, typename Make>
  void Register(Make make) {
    RegisterFactory(Options::descriptor()->full_name(),
                    [make](const google::protobuf::Any& any,
                           const PassEnvironment& environment) -> absl::StatusOr<std::unique_ptr<Pass>> {
                      Options options;
                      if (!any.UnpackTo(&options)) {
                        return absl::InvalidArgumentError(absl::StrCat("cannot read options of type ", any.type_url()));
                      }
                      return make(options, environment);
                    });
  }

  // InvalidArgument names the unknown message type and lists the known ones.
  absl::StatusOr<std::unique_ptr<Pass>> Create(const google::protobuf::Any& options,
                                               const PassEnvironment& environment) const;

  std::vector<std::string> OptionTypes() const;  // "fuselage.ConvBnOptions", sorted.

 private:
  using Factory =
      std::function<absl::StatusOr<std::unique_ptr<Pass>>(const google::protobuf::Any&, const PassEnvironment&)>;
  void RegisterFactory(const std::string& type, Factory factory);

  std::map<std::string, Factory> factories_;
};

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_REGISTRY_H_
