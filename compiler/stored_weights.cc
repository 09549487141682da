#include "compiler/stored_weights.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/fingerprint.h"

namespace fuselage::compiler {

absl::Status StoredWeights::Add(Stored stored) {
  const std::string type = ToString(stored.packed->type());
  if (!absl::EndsWith(stored.layout, absl::StrCat(" ", type))) {
    return absl::InvalidArgumentError(absl::StrCat("packed parameter @", stored.name, ": found ", type,
                                                   ", wanted the layout \"", stored.layout, "\""));
  }
  Key key(stored.parameter.get(), stored.layout);
  std::string name = stored.name;
  if (entries_.emplace(std::move(key), Entry{std::move(stored)}).second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("packed parameter @", name, ": found one layout twice"));
}

std::shared_ptr<const Tensor> StoredWeights::Get(const kernels::Parameter& parameter, const std::string& layout,
                                                 absl::FunctionRef<Tensor()> pack) {
  const auto found = entries_.find({parameter.get(), layout});
  if (found == entries_.end()) return PackedWeights::Get(parameter, layout, pack);
  Entry& entry = found->second;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!entry.verified) {
      entry.verified = true;
      entry.damaged = ir::ValueFingerprint(*entry.stored.packed) != entry.stored.checksum;
      if (entry.damaged && status_.ok()) {
        status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": packed parameter @", entry.stored.name,
                                                          ": its data is damaged: it has another checksum"));
      }
    }
    if (!entry.damaged) return entry.stored.packed;
  }
  return PackedWeights::Get(parameter, layout, pack);
}

absl::Status StoredWeights::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

}  // namespace fuselage::compiler
