// SHA-256 (FIPS 180-4), to say which file or which data a result is about.
#ifndef FUSELAGE_IR_BASE_SHA256_H_
#define FUSELAGE_IR_BASE_SHA256_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fuselage {

class Sha256 {
 public:
  void Update(absl::string_view data);
  // The bytes of an array behind their number, which tells where it ends and the next begins.
  template <typename T>
  void UpdateArray(absl::Span<const T> values) {
    const uint64_t size = values.size();
    Update({reinterpret_cast<const char*>(&size), sizeof(size)});
    Update({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  // 64 lower-case hexadecimal digits. Once.
  std::string Finish();

 private:
  void Block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  uint64_t bytes_ = 0;
};

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_SHA256_H_
