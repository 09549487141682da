// Network: a compiled network without a graph, from tables that a generated source holds (generate.h).
//
// A table's rows are constants in read-only memory. Create makes kernels of them for the machine that it runs on; a run
// allocates nothing.
#ifndef FUSELAGE_COMPILER_STANDALONE_NETWORK_H_
#define FUSELAGE_COMPILER_STANDALONE_NETWORK_H_

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/base/attribute.h"
#include "ir/base/tensor.h"
#include "kernels/core/isa.h"
#include "kernels/core/placement/placement.h"
#include "kernels/core/registry.h"
#include "runtime/schedule.h"

namespace fuselage::standalone {

constexpr int kAbsent = -1;

struct TypeRow {
  DType dtype;
  std::initializer_list<int64_t> shape;
  Layout layout;
  int quant_axis;
  std::initializer_list<float> scales;  // None: no quantization parameters.
  std::initializer_list<int32_t> zero_points;
};

struct ConstantRow {
  TypeRow type;
  int64_t offset;  // In the weights.
};

struct BufferRow {
  runtime::BufferSpec::Home home;
  int64_t bytes;
  int index;            // Of an input or an output: which; of a constant: its row.
  int whole = kAbsent;  // The row of the buffer that it lies in, and where.
  int64_t offset = 0;
};

// The member that `kind` says.
struct AttributeRow {
  const char* name;
  AttributeKind kind;
  int64_t integer;  // Also a bool or a DType.
  double number;
  const char* text;
  std::initializer_list<int64_t> integers;
  std::initializer_list<double> numbers;
  std::initializer_list<const char*> texts;
};

struct OperandRow {
  int buffer;  // Or kAbsent.
  TypeRow type;
  kernels::Placement placement;
};

struct ParameterRow {
  const char* name;
  int constant;
};

struct StepRow {
  runtime::StepKind kind;
  int registration;  // Of its kernel; or kAbsent.
  const char *node, *op;
  std::initializer_list<AttributeRow> attributes;
  std::initializer_list<OperandRow> inputs, outputs;  // Of a reorder: its one input's type.
  std::initializer_list<ParameterRow> parameters;
};

// What a kernel makes of a constant (kernels::PackedWeights).
struct PackedRow {
  int constant;
  const char* layout;
  int packed;  // A constant too.
};

struct NetworkTable {
  kernels::Isa isa;  // What kernels may be linked for; where this machine has nothing of it, the scalar ones run.
  std::initializer_list<void (*)(kernels::KernelRegistry&)> registrations;
  std::initializer_list<TypeRow> inputs, outputs;  // Row-major.
  std::initializer_list<ConstantRow> constants;
  std::initializer_list<PackedRow> packed;
  std::initializer_list<BufferRow> buffers;
  std::initializer_list<StepRow> steps;
};

class Network {
 public:
  // `weights`: 64-byte aligned, they and the table outlive the network. An error where a kernel does not take its row,
  // memory is short or the system refuses a thread.
  static absl::StatusOr<std::unique_ptr<Network>> Create(const NetworkTable& table, const uint8_t* weights,
                                                         int threads);
  virtual ~Network() = default;

  // One run at a time, from and to memory that is as large as the table's types say.
  virtual absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs) = 0;
};

}  // namespace fuselage::standalone

#endif  // FUSELAGE_COMPILER_STANDALONE_NETWORK_H_
