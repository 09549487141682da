#include "kernels/core/registry.h"

#include <utility>

#include "ir/base/check.h"

namespace fuselage::kernels {

absl::StatusOr<std::string> KernelEntry::Supports(const KernelDesc& desc) const {
  if (variant != nullptr) return variant(desc);
  ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, create(desc));
  return kernel->variant();
}

void KernelRegistry::Register(KernelEntry entry) {
  FUSELAGE_CHECK(!entry.op.empty() && entry.create != nullptr);
  std::string op = entry.op;
  const bool inserted = entries_.emplace(std::move(op), std::move(entry)).second;
  FUSELAGE_CHECK(inserted);
}

const KernelEntry* KernelRegistry::FindOrNull(absl::string_view op) const {
  const auto it = entries_.find(std::string(op));
  return it == entries_.end() ? nullptr : &it->second;
}

std::vector<const KernelEntry*> KernelRegistry::Sorted() const {
  std::vector<const KernelEntry*> entries;
  for (const auto& [name, entry] : entries_) entries.push_back(&entry);
  return entries;
}

}  // namespace fuselage::kernels
