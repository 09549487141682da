#include "ir/fingerprint.h"

#include "ir/base/check.h"
#include "ir/hasher.h"

namespace fuselage::ir {

uint64_t ValueFingerprint(const Tensor& tensor) {
  Hasher hasher;
  hasher.Add(tensor.type());
  hasher.Add(absl::string_view(static_cast<const char*>(tensor.raw_data()), tensor.byte_size()));
  return hasher.value();
}

uint64_t Fingerprint(const Graph& graph) {
  uint64_t fingerprint = 0;
  FUSELAGE_CHECK(graph.Verify(&fingerprint).ok());
  return fingerprint;
}

}  // namespace fuselage::ir
