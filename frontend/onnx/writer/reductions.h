// Norms, pools, and what runs along axes.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_REDUCTIONS_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_REDUCTIONS_H_

#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer {

absl::Status WriteBatchNorm(const Call& c);
absl::Status WriteTrailingNorm(const Call& c);  // layer_norm, rms_norm
absl::Status WriteChannelNorm(const Call& c);   // group_norm, instance_norm
absl::Status WritePool(const Call& c);          // avg_pool, max_pool
absl::Status WriteAdaptivePool(const Call& c);
absl::Status WriteReduce(const Call& c);   // sum, mean, amax, ...
absl::Status WriteSoftmax(const Call& c);  // softmax, log_softmax, hardmax
absl::Status WriteArgMax(const Call& c);   // argmax, argmin
absl::Status WriteCumSum(const Call& c);

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_REDUCTIONS_H_
