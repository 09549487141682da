// Operators that pick, put or resample elements.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_INDEXING_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_INDEXING_H_

#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer {

absl::Status WriteAlongDim(const Call& c);  // index_select, gather
absl::Status WriteGatherNd(const Call& c);
absl::Status WriteScatter(const Call& c);  // scatter, scatter_nd
absl::Status WriteMaxPoolWithIndices(const Call& c);
absl::Status WriteGridSample(const Call& c);
absl::Status WriteRoiAlign(const Call& c);
absl::Status WriteOneHot(const Call& c);
absl::Status WriteResize(const Call& c);
absl::Status WriteReverseSequence(const Call& c);
absl::Status WriteTopk(const Call& c);
absl::Status WriteTriangle(const Call& c);  // tril, triu

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_INDEXING_H_
