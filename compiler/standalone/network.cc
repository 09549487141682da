#include "compiler/standalone/network.h"

#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/core/isa.h"
#include "kernels/core/packed_weights.h"
#include "runtime/executable.h"
#include "runtime/program.h"
#include "runtime/thread_pool.h"

namespace fuselage::standalone {
namespace {

using kernels::KernelDesc;
using runtime::BufferSpec;
using runtime::StepKind;
using runtime::StepSpec;

TensorType TypeOf(const TypeRow& row) {
  TensorType type{row.dtype, row.shape, std::nullopt, row.layout};
  if (row.scales.size() > 0) type.quant = QuantParams{row.scales, row.zero_points, row.quant_axis};
  return type;
}

Attribute ValueOf(const AttributeRow& row) {
  switch (row.kind) {
    case AttributeKind::kBool: return row.integer != 0;
    case AttributeKind::kInt: return row.integer;
    case AttributeKind::kFloat: return row.number;
    case AttributeKind::kString: return row.text;
    case AttributeKind::kDType: return static_cast<DType>(row.integer);
    case AttributeKind::kInts: return std::vector<int64_t>(row.integers);
    case AttributeKind::kFloats: return std::vector<double>(row.numbers);
    case AttributeKind::kStrings: return std::vector<std::string>(row.texts.begin(), row.texts.end());
  }
  return false;
}

// Packs what the table has not.
class TableWeights final : public kernels::PackedWeights {
 public:
  void Add(const Tensor* parameter, const char* layout, std::shared_ptr<const Tensor> packed) {
    packed_.emplace(std::make_pair(parameter, std::string(layout)), std::move(packed));
  }
  std::shared_ptr<const Tensor> Get(const kernels::Parameter& parameter, const std::string& layout,
                                    absl::FunctionRef<Tensor()> pack) override {
    const auto found = packed_.find({parameter.get(), layout});
    return found != packed_.end() ? found->second : PackedWeights::Get(parameter, layout, pack);
  }

 private:
  std::map<std::pair<const Tensor*, std::string>, std::shared_ptr<const Tensor>> packed_;
};

class Reader {
 public:
  Reader(const NetworkTable& table, const uint8_t* weights, int threads) : table_(table), threads_(threads) {
    for (const kernels::Isa isa : kernels::SupportedIsas()) {
      if (table.isa.Includes(isa)) isa_ = isa_ | isa;
    }
    for (const auto& register_kernels : table.registrations) register_kernels(registries_.emplace_back());
    for (const ConstantRow& row : table.constants) {
      // Nothing writes to a constant, and nobody needs to own it.
      uint8_t* const data = const_cast<uint8_t*>(weights + row.offset);
      const std::shared_ptr<const void> owner(std::shared_ptr<const void>(), weights);
      constants_.push_back(std::make_shared<const Tensor>(Tensor::Borrow(TypeOf(row.type), data, owner)));
    }
    for (const PackedRow& row : table.packed) {
      weights_.Add(constants_[row.constant].get(), row.layout, constants_[row.packed]);
    }
  }

  absl::StatusOr<runtime::Schedule> Read() {
    for (const TypeRow& row : table_.inputs) {
      schedule_.input_names.emplace_back();
      schedule_.input_types.push_back(TypeOf(row));
    }
    for (const TypeRow& row : table_.outputs) schedule_.output_types.push_back(TypeOf(row));
    for (const BufferRow& row : table_.buffers) {
      BufferSpec buffer;
      buffer.home = row.home;
      buffer.bytes = row.bytes;
      buffer.whole = row.whole;
      buffer.offset = row.offset;
      if (row.home == BufferSpec::Home::kConstant) {
        buffer.constant = constants_[row.index];
      } else {
        buffer.index = row.index;
      }
      schedule_.buffers.push_back(std::move(buffer));
    }
    for (const StepRow& row : table_.steps) {
      ASSIGN_OR_RETURN(StepSpec step, StepOf(row));
      runtime::AddStep(std::move(step), &schedule_);
    }
    return std::move(schedule_);
  }

 private:
  absl::StatusOr<StepSpec> StepOf(const StepRow& row) {
    StepSpec step{row.kind, nullptr, row.node, row.op};
    for (const OperandRow& operand : row.inputs) step.inputs.push_back(operand.buffer);
    for (const OperandRow& operand : row.outputs) step.outputs.push_back(operand.buffer);
    if (row.kind == StepKind::kReorder) step.reordered = TypeOf(row.inputs.begin()->type);
    if (row.kind != StepKind::kKernel) return step;
    KernelDesc desc;
    desc.op = row.op;
    for (const AttributeRow& attribute : row.attributes) desc.attributes.emplace(attribute.name, ValueOf(attribute));
    for (const OperandRow& operand : row.inputs) {
      desc.inputs.push_back(operand.buffer == kAbsent ? std::nullopt : std::optional(TypeOf(operand.type)));
      desc.input_placements.push_back(operand.placement);
    }
    for (const OperandRow& operand : row.outputs) desc.outputs.push_back(TypeOf(operand.type));
    desc.output_placement = row.outputs.begin()->placement;
    for (const ParameterRow& parameter : row.parameters) {
      desc.parameters.emplace(parameter.name, constants_[parameter.constant]);
    }
    desc.weights = &weights_;
    desc.isa = isa_;
    desc.threads = threads_;
    absl::StatusOr<std::unique_ptr<kernels::Kernel>> kernel =
        registries_[row.registration].FindOrNull(row.op)->create(desc);
    if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat("%", row.node, " (", row.op, ")"));
    step.kernel = *std::move(kernel);
    return step;
  }

  const NetworkTable& table_;
  const int threads_;
  kernels::Isa isa_ = kernels::Isa::kScalar;
  std::deque<kernels::KernelRegistry> registries_;
  std::vector<std::shared_ptr<const Tensor>> constants_;
  TableWeights weights_;
  runtime::Schedule schedule_;
};

class NetworkImpl final : public Network {
 public:
  explicit NetworkImpl(int threads) : pool_(threads) {}

  absl::Status Init(const NetworkTable& table, const uint8_t* weights) {
    ASSIGN_OR_RETURN(runtime::Schedule schedule, Reader(table, weights, pool_.threads()).Read());
    ASSIGN_OR_RETURN(executable_,
                     runtime::Executable::Create(
                         runtime::PlanProgram(std::move(schedule), /*on_host=*/true, pool_.threads()), &pool_));
    return absl::OkStatus();
  }

  absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs) override {
    return executable_->RunAt(inputs, outputs);
  }

 private:
  runtime::ThreadPool pool_;
  std::unique_ptr<runtime::Executable> executable_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> Network::Create(const NetworkTable& table, const uint8_t* weights,
                                                         int threads) {
  if (threads < 1 || threads > runtime::ThreadPool::kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat(threads, " threads, wanted 1 to ", runtime::ThreadPool::kMaxThreads));
  }
  try {
    auto network = std::make_unique<NetworkImpl>(threads);
    RETURN_IF_ERROR(network->Init(table, weights));
    return network;
  } catch (const std::exception& e) {  // std::bad_alloc, std::system_error.
    return absl::ResourceExhaustedError(e.what());
  }
}

}  // namespace fuselage::standalone
