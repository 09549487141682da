// Named tensors <=> NumPy's .npz: a zip archive of .npy files, as numpy.savez writes and numpy.load reads.
//
// A file is untrusted: errors are InvalidArgument, name the file and the array, and say what was found and wanted.
#ifndef FUSELAGE_HARNESS_NPZ_NPZ_H_
#define FUSELAGE_HARNESS_NPZ_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/tensor.h"

namespace fuselage::npz {

struct Array {
  std::string name;  // The archive's file without ".npy"; may hold '/'.
  Tensor tensor;
};

// All arrays, in the archive's order. Takes bool, integers and floats in C order and little-endian, as NumPy on our
// machines writes them; ResourceExhausted where all together need more than `max_bytes`.
absl::StatusOr<std::vector<Array>> Read(const std::string& path, int64_t max_bytes = int64_t{8} << 30);

// Stored, not compressed, and equal bytes for equal arrays. Names are unique. Quantized tensors go as their codes.
absl::Status Write(const std::string& path, const std::vector<Array>& arrays);

// The header of a .npy file (NumPy's lib/format.py, versions 1.0 to 3.0), up to and including its newline.
struct Header {
  TensorType type;
  int64_t size = 0;  // Bytes of the header itself.
};
absl::StatusOr<Header> ParseHeader(absl::string_view bytes);
std::string HeaderOf(const TensorType& type);  // Version 1.0.

}  // namespace fuselage::npz

#endif  // FUSELAGE_HARNESS_NPZ_NPZ_H_
