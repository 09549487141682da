#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "kernels/core/isa.h"

namespace fuselage::kernels {
namespace {

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zeros where the CPU has no such leaf.
Registers CpuId(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) r = Registers();
  return r;
}

bool Bit(uint32_t word, int bit) { return (word >> bit) & 1; }

// Which register state the operating system saves. XGETBV faults unless CPUID says that it is there.
uint64_t Xcr0() {
  if (!Bit(CpuId(1).ecx, 27)) return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

constexpr uint64_t kYmmState = 0x6;        // XMM and upper halves of YMM.
constexpr uint64_t kZmmState = 0xe6;       // Also opmask, upper halves of ZMM0-15, ZMM16-31.
constexpr uint64_t kTileState = 3u << 17;  // TILECFG and TILEDATA.

bool HasAvx2() { return (Xcr0() & kYmmState) == kYmmState && Bit(CpuId(1).ecx, 12) /* FMA */ && Bit(CpuId(7).ebx, 5); }

bool HasAvxVnni() { return HasAvx2() && Bit(CpuId(7, 1).eax, 4); }

bool HasAvx512Vnni() {
  const Registers seven = CpuId(7);
  return HasAvx2() && (Xcr0() & kZmmState) == kZmmState && Bit(seven.ebx, 16) /* F */ && Bit(seven.ebx, 17) /* DQ */ &&
         Bit(seven.ebx, 30) /* BW */ && Bit(seven.ebx, 31) /* VL */ && Bit(seven.ecx, 11) /* VNNI */;
}

bool HasAmx() {
  const Registers seven = CpuId(7);
  if (!HasAvx512Vnni() || !Bit(seven.edx, 24) /* TILE */ || !Bit(seven.edx, 25) /* INT8 */) return false;
  if ((Xcr0() & kTileState) != kTileState) return false;
  if (CpuId(0x1d).eax < 1) return false;  // No tile palette.
  // Linux gives a process the tile state on request (ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA); without it tiles fault.
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

}  // namespace

Isa BestIsa() {
  static const Isa best = [] {
    Isa isa = Isa::kScalar;
#define FUSELAGE_ISA(Name, ...) \
  if (Has##Name()) isa = isa | Isa::k##Name;
    FUSELAGE_ISAS(FUSELAGE_ISA)
#undef FUSELAGE_ISA
    return isa;
  }();
  return best;
}

std::string CpuName() {
  if (CpuId(0x80000000).eax < 0x80000004) return "unknown";
  char brand[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const Registers r = CpuId(0x80000002 + i);
    std::memcpy(brand + 16 * i, &r, 16);
  }
  std::string name = brand;
  const size_t first = name.find_first_not_of(' ');
  if (first == std::string::npos) return "unknown";
  return name.substr(first, name.find_last_not_of(' ') + 1 - first);
}

}  // namespace fuselage::kernels
