#include "ir/fingerprint.h"

#include <cstring>

#include "ir/base/check.h"
#include "ir/hasher.h"

namespace fuselage::ir {

namespace {

// Both halves of the product.
uint64_t Mixed(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t ValueFingerprint(const Tensor& tensor) {
  // All weights of a network go through here whenever it is loaded: a multiplication takes two words, and four do not
  // wait for each other.
  absl::string_view bytes(static_cast<const char*>(tensor.raw_data()), tensor.byte_size());
  uint64_t lanes[4] = {1, 2, 3, 4};
  for (uint64_t words[8]; bytes.size() >= sizeof(words); bytes.remove_prefix(sizeof(words))) {
    std::memcpy(words, bytes.data(), sizeof(words));
    lanes[0] = Mixed(words[0] ^ lanes[0], words[1] ^ 0x9e3779b97f4a7c15u);
    lanes[1] = Mixed(words[2] ^ lanes[1], words[3] ^ 0xbf58476d1ce4e5b9u);
    lanes[2] = Mixed(words[4] ^ lanes[2], words[5] ^ 0x94d049bb133111ebu);
    lanes[3] = Mixed(words[6] ^ lanes[3], words[7] ^ 0x2545f4914f6cdd1du);
  }
  Hasher hasher;
  hasher.Add(tensor.type());
  for (const uint64_t lane : lanes) hasher.Add(lane);
  hasher.Add(bytes);
  return hasher.value();
}

uint64_t Fingerprint(const Graph& graph) {
  uint64_t fingerprint = 0;
  FUSELAGE_CHECK(graph.Verify(&fingerprint).ok());
  return fingerprint;
}

}  // namespace fuselage::ir
