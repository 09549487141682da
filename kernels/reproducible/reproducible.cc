#include "kernels/reproducible/reproducible.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/along_axis/along_axis.h"
#include "kernels/attention/attention.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/reproducible/families.h"

namespace fuselage::reproducible {

kernels::KernelEntry WithoutReference(kernels::KernelEntry entry) {
  entry.create = [create = std::move(entry.create)](const kernels::KernelDesc& desc) {
    auto kernel = create(desc);
    if (absl::IsUnimplemented(kernel.status()) && IsFloat(desc.output().dtype)) {
      kernel = absl::FailedPreconditionError(absl::StrCat(kernel.status().message(), "; the reference evaluation of ",
                                                          desc.op, " has other bits on other machines"));
    }
    return kernel;
  };
  return entry;
}

void RegisterWith(absl::Span<const Primitives> table, kernels::KernelRegistry& registry) {
  RegisterConv(table, registry);
  RegisterLinear(table, registry);
  RegisterNormalize(table, registry);
  RegisterPool(registry);
  kernels::KernelRegistry others;  // Whose reference evaluations have the machine's exponentials and logarithms.
  along_axis::Register(others);
  attention::Register(others);
  pointwise::RegisterAll(others);
  recurrent::Register(others);
  for (const kernels::KernelEntry* entry : others.Sorted()) registry.Register(WithoutReference(*entry));
}

void Register(kernels::KernelRegistry& registry) { RegisterWith(AllPrimitives(), registry); }

}  // namespace fuselage::reproducible
