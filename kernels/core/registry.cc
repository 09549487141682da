#include "kernels/core/registry.h"

#include <utility>

#include "ir/base/check.h"

namespace fuselage::kernels {

void KernelRegistry::Register(KernelEntry entry) {
  FUSELAGE_CHECK(!entry.op.empty() && entry.create != nullptr);
  FUSELAGE_CHECK(entry.quantized_form_of.empty() || FindQuantizedFormOrNull(entry.quantized_form_of) == nullptr);
  std::string op = entry.op;
  const bool inserted = entries_.emplace(std::move(op), std::move(entry)).second;
  FUSELAGE_CHECK(inserted);
}

const KernelEntry* KernelRegistry::FindOrNull(absl::string_view op) const {
  const auto it = entries_.find(std::string(op));
  return it == entries_.end() ? nullptr : &it->second;
}

const KernelEntry* KernelRegistry::FindQuantizedFormOrNull(absl::string_view op) const {
  if (op.empty()) return nullptr;
  for (const auto& [name, entry] : entries_) {
    if (entry.quantized_form_of == op) return &entry;
  }
  return nullptr;
}

std::vector<const KernelEntry*> KernelRegistry::Sorted() const {
  std::vector<const KernelEntry*> entries;
  for (const auto& [name, entry] : entries_) entries.push_back(&entry);
  return entries;
}

}  // namespace fuselage::kernels
