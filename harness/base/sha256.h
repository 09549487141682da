// SHA-256 (FIPS 180-4), to say which model file a report is about.
#ifndef FUSELAGE_HARNESS_BASE_SHA256_H_
#define FUSELAGE_HARNESS_BASE_SHA256_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fuselage::harness {

class Sha256 {
 public:
  void Update(absl::string_view data);
  // 64 lower-case hexadecimal digits. Once.
  std::string Finish();

 private:
  void Block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  uint64_t bytes_ = 0;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_BASE_SHA256_H_
