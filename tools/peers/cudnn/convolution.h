// One convolution of a network as cuDNN's graph API computes it best: fused with all that follows, by an engine of its
// heuristics' choice.
//
//   i8   y = saturate(round(relu(conv(x, w) * scale[c] + bias[c] + residual))), with sums in i32 and the rest in f32
//   f16  y = relu(conv(x, w) + bias[c] + residual), with sums and the rest in f32
//
// in NHWC. The residual has the scale of the result: its engines take no factor there.
#ifndef FUSELAGE_TOOLS_PEERS_CUDNN_CONVOLUTION_H_
#define FUSELAGE_TOOLS_PEERS_CUDNN_CONVOLUTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/dtype.h"
#include "tools/peers/cudnn/backend.h"

namespace fuselage::peers::cudnn {

struct Convolution {
  DType dtype = DType::kI8;            // Or kF16.
  std::array<int64_t, 4> input = {};   // [n, c, h, w]
  std::array<int64_t, 4> weight = {};  // [oc, c / groups, kh, kw]
  std::array<int64_t, 4> output = {};  // [n, oc, oh, ow]
  std::vector<int64_t> stride = {1, 1}, dilation = {1, 1};
  std::vector<int64_t> padding = {0, 0, 0, 0};  // Top, left, bottom, right.
  bool relu = false, residual = false;

  auto Key() const { return std::tie(dtype, input, weight, output, stride, dilation, padding, relu, residual); }
  bool operator<(const Convolution& other) const { return Key() < other.Key(); }
};

// By these ids a plan knows its operands.
enum Operand : int64_t { kInput = 1, kWeight, kScale, kBias, kResidual, kOutput };

struct Plan {
  Descriptor descriptor;
  int64_t workspace_bytes = 0;
  int64_t engine = 0;  // cuDNN's number of it.
};

// The properties of the current CUDA device, or of one that is described as cuDNN describes it in JSON.
absl::StatusOr<Descriptor> CurrentDevice(const Library& library);
absl::StatusOr<Descriptor> DescribedDevice(const Library& library, const std::string& json);

class FusedConvolution {
 public:
  static absl::StatusOr<FusedConvolution> Create(const Library& library, const Convolution& convolution);

  // Configurations of engines for this device, which cuDNN expects to be fast in this order; empty: it has none.
  absl::StatusOr<std::vector<Descriptor>> Candidates(void* device) const;
  // Compiles what the engine needs to have compiled.
  absl::StatusOr<Plan> PlanOf(void* candidate, void* device) const;

  // Enqueues it on the handle's stream. `pointers`: device memory by Operand less 1; null where there is no such
  // operand.
  absl::Status Execute(void* handle, const Plan& plan, const std::array<void*, 6>& pointers, void* workspace) const;

 private:
  explicit FusedConvolution(const Library& library) : library_(&library) {}

  absl::StatusOr<void*> Keep(absl::StatusOr<Descriptor> made);
  absl::StatusOr<void*> Tensor(int64_t id, int type, const std::array<int64_t, 4>& dims, bool is_virtual);
  absl::Status AddConvolution(const Convolution& convolution, void* sums);
  // values = mode(values, other), into the tensor `output`, or a virtual one where that is null.
  absl::Status AddPointwise(int mode, void* other, void* output, void** values);
  absl::StatusOr<std::vector<Descriptor>> CandidatesBy(int mode, void* device) const;

  const Library* library_;
  std::vector<Descriptor> kept_;  // Those that others refer to.
  std::vector<void*> operations_;
  std::vector<int64_t> ids_;  // Of the tensors in memory.
  std::array<int64_t, 4> output_ = {};
  int64_t next_virtual_ = kOutput + 1;
  Descriptor graph_{nullptr, nullptr};
};

}  // namespace fuselage::peers::cudnn

#endif  // FUSELAGE_TOOLS_PEERS_CUDNN_CONVOLUTION_H_
