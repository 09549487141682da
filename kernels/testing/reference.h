// A kernel against the reference evaluation of its op. For tests.
#ifndef FUSELAGE_KERNELS_TESTING_REFERENCE_H_
#define FUSELAGE_KERNELS_TESTING_REFERENCE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/attribute.h"
#include "ir/base/tensor.h"
#include "ir/op.h"
#include "kernels/core/registry.h"

namespace fuselage::kernels {

// One call of an op, on row-major operands in the order of its schema; nullopt: absent.
struct OpCall {
  std::string op;
  std::vector<std::optional<Tensor>> operands;
  AttributeMap attributes;
};

// All operators, registered once.
const ir::OpRegistry& Ops();

// The same logical tensor in another layout.
Tensor InLayout(const Tensor& tensor, Layout layout);

// What a kernel is made for, with operands and results of rank 4 in these layouts. Points into the call. Aborts where
// the op does not infer a type: a test's own mistake.
KernelDesc DescOf(const OpCall& call, Layout in, Layout out);

// All results of one run, row-major, on memory that is misaligned by an element. An error also where the kernel writes
// beyond its results or its scratch memory.
absl::StatusOr<std::vector<Tensor>> RunCall(const KernelEntry& entry, const OpCall& call, const KernelDesc& desc);

// "" where the kernel of the op has the reference's results, bit for bit (NaN aside), in every layout that it takes, on
// every instruction set that this machine runs, on one thread and on three. Otherwise what differs.
std::string DifferenceFromReference(const KernelRegistry& kernels, const OpCall& call);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_TESTING_REFERENCE_H_
