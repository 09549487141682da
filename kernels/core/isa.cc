#include "kernels/core/isa.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace fuselage::kernels {
namespace {

constexpr Isa kIsas[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512Vnni, Isa::kAmx};
constexpr absl::string_view kNames[] = {"scalar", "avx2", "avx_vnni", "avx512_vnni", "amx"};
constexpr int kCount = sizeof(kIsas) / sizeof(kIsas[0]);

// Does another name within `isa` say more than this one?
bool Implied(Isa named, Isa isa) {
  for (const Isa other : kIsas) {
    if (other != named && isa.Includes(other) && other.Includes(named)) return true;
  }
  return false;
}

}  // namespace

absl::Span<const Isa> AllIsas() { return kIsas; }

std::vector<Isa> SupportedIsas() {
  std::vector<Isa> supported;
  std::copy_if(std::begin(kIsas), std::end(kIsas), std::back_inserter(supported), CpuSupports);
  return supported;
}

std::string IsaName(Isa isa) {
  std::vector<absl::string_view> names;
  for (int i = 0; i < kCount; ++i) {
    if (isa.Includes(kIsas[i]) && !Implied(kIsas[i], isa)) names.push_back(kNames[i]);
  }
  return absl::StrJoin(names, "+");
}

absl::StatusOr<Isa> IsaFromName(absl::string_view name) {
  Isa isa = Isa::kScalar;
  for (const absl::string_view part : absl::StrSplit(name, '+')) {
    const auto found = std::find(std::begin(kNames), std::end(kNames), part);
    if (found == std::end(kNames)) {
      return absl::InvalidArgumentError(absl::StrCat("unknown instruction set '", part, "', wanted ",
                                                     absl::StrJoin(kNames, ", "), ", or several joined by '+'"));
    }
    isa = isa | kIsas[found - std::begin(kNames)];
  }
  return isa;
}

}  // namespace fuselage::kernels
