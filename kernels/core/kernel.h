// Kernel: one operator, bound to shapes, quantization parameters and weights, ready to run many times.
#ifndef FUSELAGE_KERNELS_CORE_KERNEL_H_
#define FUSELAGE_KERNELS_CORE_KERNEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/base/attribute.h"
#include "ir/base/status.h"
#include "ir/base/tensor.h"
#include "kernels/core/isa.h"
#include "kernels/core/packed_weights.h"
#include "kernels/core/parallel.h"
#include "kernels/core/placement/placement.h"

namespace fuselage::kernels {

// What to make a kernel for. Kernels never see a Graph.
struct KernelDesc {
  std::string op;           // "int8.conv2d": the key in the KernelRegistry.
  AttributeMap attributes;  // Complete: defaults are filled in.
  // The operands that arrive at run time, in schema order without the parameters; nullopt: absent (no residual).
  std::vector<std::optional<TensorType>> inputs;
  std::vector<TensorType> outputs;
  // Where operands of rank 4 in NHWC lie; none: dense. Only a kernel whose KernelEntry::takes_placements says so takes
  // others.
  std::vector<Placement> input_placements;
  Placement output_placement;
  // "weight", "bias"; also the operands among `inputs` that no run changes. Alive during Create only.
  std::map<std::string, Parameter> parameters;
  PackedWeights* weights = nullptr;  // Where kernels share what they pack; null: they do not. Alive during Create only.
  Isa isa = Isa::kScalar;            // What may be used; Create takes the best variant that needs no more.
  int threads = 1;                   // The most threads that Run will have.

  const Tensor* ParameterOrNull(absl::string_view name) const;
  // What `pack` makes of a parameter (PackedWeights::Get).
  std::shared_ptr<const Tensor> Packed(absl::string_view name, const std::string& layout,
                                       absl::FunctionRef<Tensor()> pack) const;
  bool has_input(int i) const { return i < static_cast<int>(inputs.size()) && inputs[i].has_value(); }
  const TensorType& input(int i) const { return *inputs[i]; }
  const TensorType& output() const { return outputs[0]; }
  Placement input_placement(int i) const {
    return i < static_cast<int>(input_placements.size()) ? input_placements[i] : Placement();
  }

  bool GetBool(absl::string_view name) const { return attribute(name).as_bool(); }
  int64_t GetInt(absl::string_view name) const { return attribute(name).as_int(); }
  double GetFloat(absl::string_view name) const { return attribute(name).as_float(); }
  const std::string& GetString(absl::string_view name) const { return attribute(name).as_string(); }
  const std::vector<int64_t>& GetInts(absl::string_view name) const { return attribute(name).as_ints(); }
  const Attribute& attribute(absl::string_view name) const;  // Aborts where there is none.
};

// Memory of one operand during a run: `bytes` bytes or more in the layout of its TensorType and its Placement, aligned
// for its elements.
struct ConstBuffer {
  const void* data = nullptr;  // Null: absent.
  int64_t bytes = 0;
};
struct Buffer {
  void* data = nullptr;
  int64_t bytes = 0;
};

struct RunContext {
  Parallel* parallel = nullptr;
  Buffer scratch;          // At least scratch_bytes(), 64-byte aligned, contents undefined.
  void* stream = nullptr;  // cudaStream_t, for kernels whose operands are in device memory.
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Checks that operands and scratch are present and as large as their types say, then computes. Allocates nothing.
  // An error also where the operands hold values that the operator does not take (a computed scale of 0).
  absl::Status Run(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                   const RunContext& context) const;

  const std::vector<std::optional<TensorType>>& inputs() const { return inputs_; }
  const std::vector<TensorType>& outputs() const { return outputs_; }

  // The first output's: what lowering reads and the next kernel is made with. 1 and 0 where the output is float.
  float output_scale() const;
  int32_t output_zero_point() const;

  // The variant that Create chose: "avx2 winograd", "onednn jit:avx2".
  const std::string& variant() const { return variant_; }

  // Scratch memory that Run needs, for KernelDesc::threads threads.
  int64_t scratch_bytes() const { return scratch_bytes_; }
  // Packed weights and tables: `packed`, which other kernels may have too (KernelDesc::Packed), and its own.
  int64_t weight_bytes() const;
  int64_t own_weight_bytes() const { return own_weight_bytes_; }
  const std::vector<std::shared_ptr<const Tensor>>& packed() const { return packed_; }

 protected:
  explicit Kernel(const KernelDesc& desc);

  void set_variant(std::string variant) { variant_ = std::move(variant); }
  void set_scratch_bytes(int64_t bytes) { scratch_bytes_ = bytes; }
  void set_weight_bytes(int64_t own, std::vector<std::shared_ptr<const Tensor>> packed = {}) {
    own_weight_bytes_ = own;
    packed_ = std::move(packed);
  }

 private:
  // A kernel has one of the two: TryCompute where operands may hold values that it does not take.
  virtual void Compute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                       const RunContext& context) const;
  virtual absl::Status TryCompute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                                  const RunContext& context) const;

  std::vector<std::optional<TensorType>> inputs_;
  std::vector<TensorType> outputs_;
  std::vector<int64_t> input_bytes_, output_bytes_;
  std::string variant_;
  int64_t scratch_bytes_ = 0;
  int64_t own_weight_bytes_ = 0;
  std::vector<std::shared_ptr<const Tensor>> packed_;
};

// One tensor in, one out.
class UnaryKernel : public Kernel {
 protected:
  explicit UnaryKernel(const KernelDesc& desc) : Kernel(desc) {}

 private:
  void Compute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
               const RunContext& context) const final {
    ComputeUnary(inputs[0].data, outputs[0].data, context);
  }
  virtual void ComputeUnary(const void* x, void* y, const RunContext& context) const = 0;
};

// Two tensors in, one out.
class BinaryKernel : public Kernel {
 protected:
  explicit BinaryKernel(const KernelDesc& desc) : Kernel(desc) {}

 private:
  void Compute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
               const RunContext& context) const final {
    ComputeBinary(inputs[0].data, inputs[1].data, outputs[0].data, context);
  }
  virtual void ComputeBinary(const void* a, const void* b, void* y, const RunContext& context) const = 0;
};

// What an operand takes in memory: placements other than dense are for codes of rank 4.
int64_t PlacedBytes(const TensorType& type, const Placement& placement);

// Checks of Create, each with a message that says what was found and what was wanted.
absl::Status CheckCodes(const TensorType& type, absl::string_view what);  // u8 or i8 with per-tensor parameters.
absl::Status CheckSameQuantization(const TensorType& a, const TensorType& b, absl::string_view what);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_KERNEL_H_
