#include "kernels/core/isa.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace fuselage::kernels {
namespace {

struct NamedIsa {
  absl::string_view name;
  Isa isa;
};
#define FUSELAGE_ISA(Name, name, ...) {#name, Isa::k##Name},
constexpr NamedIsa kNames[] = {{"scalar", Isa::kScalar}, FUSELAGE_ISAS(FUSELAGE_ISA)};
#undef FUSELAGE_ISA

// Does another name within `isa` say more than this one?
bool Implied(Isa named, Isa isa) {
  for (const NamedIsa& other : kNames) {
    if (other.isa != named && isa.Includes(other.isa) && other.isa.Includes(named)) return true;
  }
  return false;
}

}  // namespace

absl::Span<const Isa> AllIsas() {
  static const auto& isas = *new std::vector<Isa>([] {
    std::vector<Isa> all;
    for (const NamedIsa& named : kNames) all.push_back(named.isa);
    return all;
  }());
  return isas;
}

std::vector<Isa> SupportedIsas() {
  std::vector<Isa> supported;
  std::copy_if(AllIsas().begin(), AllIsas().end(), std::back_inserter(supported), CpuSupports);
  return supported;
}

std::string IsaName(Isa isa) {
  std::vector<absl::string_view> names;
  for (const NamedIsa& named : kNames) {
    if (isa.Includes(named.isa) && !Implied(named.isa, isa)) names.push_back(named.name);
  }
  return absl::StrJoin(names, "+");
}

absl::StatusOr<Isa> IsaFromName(absl::string_view name) {
  Isa isa = Isa::kScalar;
  for (const absl::string_view part : absl::StrSplit(name, '+')) {
    const auto found =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const NamedIsa& named) { return named.name == part; });
    if (found == std::end(kNames)) {
      const auto append = [](std::string* out, const NamedIsa& named) { absl::StrAppend(out, named.name); };
      return absl::InvalidArgumentError(absl::StrCat("unknown instruction set '", part, "', wanted ",
                                                     absl::StrJoin(kNames, ", ", append),
                                                     ", or several joined by '+'"));
    }
    isa = isa | found->isa;
  }
  return isa;
}

}  // namespace fuselage::kernels
