#include "frontend/onnx/converters.h"

#include <memory>

#include "absl/strings/ascii.h"
#include "ir/base/check.h"

namespace fuselage::onnx {

void Converters::Add(absl::string_view domain, std::initializer_list<Converter> converters) {
  for (Converter converter : converters) {
    if (converter.target.empty()) converter.target = absl::AsciiStrToLower(converter.name);
    const bool inserted = by_name_.try_emplace(std::pair(domain, converter.name), converter).second;
    FUSELAGE_CHECK(inserted);
  }
}

const Converter* Converters::FindOrNull(absl::string_view domain, absl::string_view name) const {
  const auto it = by_name_.find({IsDefaultDomain(domain) ? "" : domain, name});
  return it == by_name_.end() ? nullptr : &it->second;
}

bool IsDefaultDomain(absl::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

const Converter* FindConverterOrNull(absl::string_view domain, absl::string_view name) {
  static const Converters& all = *[] {
    auto converters = std::make_unique<Converters>();
    RegisterAll(*converters);
    return converters.release();
  }();
  return all.FindOrNull(domain, name);
}

absl::Status ConvertSame(Call& call) { return call.Result(call.target(), call.operands()); }

}  // namespace fuselage::onnx
