// KernelRegistry: which kernels there are. Each kernel folder exports Register(KernelRegistry&); kernels/BUILD lists
// them.
#ifndef FUSELAGE_KERNELS_CORE_REGISTRY_H_
#define FUSELAGE_KERNELS_CORE_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/kernel.h"

namespace fuselage::kernels {

// In which layouts a kernel takes and gives tensors of rank 4.
enum class LayoutRule {
  kNhwc,       // NHWC in, NHWC out.
  kRowMajor,   // Row-major in and out.
  kSame,       // Any, the same for all operands and results (elementwise).
  kAnyInput,   // Any, or row-major in and NHWC out (quantize: the graph's input becomes NHWC on the way).
  kAnyOutput,  // Any, or NHWC in and row-major out (dequantize).
};

// An entry's table of variants as C++ names it, in the namespace fuselage: a source may make an entry of some of its rows,
// and its program has no code of the others.
struct VariantTable {
  std::vector<std::string> headers;
  std::string rows;   // "int8::conv2d::kVariants", constexpr.
  std::string entry;  // "int8::conv2d::EntryOf": of a table of such rows, which must outlive it, the entry.
  // Those that may run a description with the sets that desc.isa allows, whatever this CPU has.
  std::function<std::vector<int>(const KernelDesc&)> needed;
};

struct KernelEntry {
  std::string op;  // The IR op that it runs: "conv2d" (float), "int8.conv2d" (quantized).
  LayoutRule layout = LayoutRule::kNhwc;
  // Unimplemented: a form that it does not run; InvalidArgument: a description that is wrong. Both say why.
  std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelDesc&)> create;
  // Does create take a description with these placements? Null: dense ones only.
  std::function<bool(const KernelDesc&)> takes_placements = nullptr;
  // The placement of input 0 that makes it fastest, whatever the description's says. Null: it has no wish.
  std::function<Placement(const KernelDesc&)> preferred_placement = nullptr;
  // Where create packs weights: Kernel::variant() of what it would make, or its error, without packing any.
  std::function<absl::StatusOr<std::string>(const KernelDesc&)> variant = nullptr;

  // The variants that may run a description on this machine, the one that create takes first, and none in plain code that
  // is not that one: its attribute "variant" asks for another. Null: it has no such attribute.
  std::vector<std::string> (*variants)(const KernelDesc&) = nullptr;

  // Null: its variants are too small to be worth choosing from.
  std::optional<VariantTable> table = std::nullopt;

  // The variant that would run `desc`, or why none does.
  absl::StatusOr<std::string> Supports(const KernelDesc& desc) const;
};

class KernelRegistry {
 public:
  KernelRegistry() = default;
  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  // Aborts on an op that is taken.
  void Register(KernelEntry entry);

  const KernelEntry* FindOrNull(absl::string_view op) const;
  std::vector<const KernelEntry*> Sorted() const;

 private:
  std::map<std::string, KernelEntry, std::less<>> entries_;
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_REGISTRY_H_
