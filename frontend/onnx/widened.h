// Stored element types that the IR lacks: their tensors are read as the next wider type, which holds each of their
// values.
#ifndef FUSELAGE_FRONTEND_ONNX_WIDENED_H_
#define FUSELAGE_FRONTEND_ONNX_WIDENED_H_

#include <cstdint>

#include "ir/base/dtype.h"

namespace fuselage::onnx {

struct Widened {
  int element_type;  // TensorProto::DataType; some are newer than the schema that this is built with.
  const char* name;
  DType dtype;                // What it is read as.
  int bits;                   // Stored, 4 bits two to a byte, the first in the low ones.
  double (*value)(uint32_t);  // What the stored bits mean.
};

// Null for a type that the IR has, or that nothing reads.
const Widened* FindWidenedOrNull(int element_type);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_WIDENED_H_
