#include "kernels/testing/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/check.h"
#include "ir/ops/register_all.h"
#include "kernels/core/testing/testing.h"

namespace fuselage::kernels {
namespace {

TensorType WithLayout(TensorType type, Layout layout) {
  if (type.rank() == 4) type.layout = layout;
  return type;
}

ir::Type TypeOf(const OpCall& call) {
  std::vector<ir::Type> types;
  types.reserve(call.operands.size());
  std::vector<const ir::Type*> pointers;
  for (const auto& operand : call.operands) {
    if (operand) types.emplace_back(operand->type());
    pointers.push_back(operand ? &types.back() : nullptr);
  }
  auto type = ir::Infer(*Ops().FindOrNull(call.op), call.attributes, std::move(pointers));
  if (!type.ok()) std::cerr << call.op << ": " << type.status() << "\n";
  FUSELAGE_CHECK(type.ok());
  return *std::move(type);
}

absl::StatusOr<std::vector<Tensor>> Reference(const OpCall& call) {
  std::vector<std::vector<Tensor>> values;
  values.reserve(call.operands.size());
  std::vector<const std::vector<Tensor>*> pointers;
  for (const auto& operand : call.operands) {
    if (operand) values.push_back({*operand});
    pointers.push_back(operand ? &values.back() : nullptr);
  }
  return ir::Evaluate(*Ops().FindOrNull(call.op), call.attributes, std::move(pointers), TypeOf(call));
}

bool SameBits(const Tensor& a, const Tensor& b) {
  if (a.byte_size() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.byte_size()) == 0) return true;
  if (a.dtype() != DType::kF32) return false;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    if (std::memcmp(&x, &y, sizeof(x)) != 0 && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

std::vector<std::pair<Layout, Layout>> LayoutsOf(LayoutRule rule) {
  constexpr Layout kRows = Layout::kRowMajor, kNhwc = Layout::kNhwc;
  switch (rule) {
    case LayoutRule::kNhwc: return {{kNhwc, kNhwc}};
    case LayoutRule::kRowMajor: return {{kRows, kRows}};
    case LayoutRule::kSame: return {{kNhwc, kNhwc}, {kRows, kRows}};
    case LayoutRule::kAnyInput: return {{kNhwc, kNhwc}, {kRows, kRows}, {kRows, kNhwc}};
    case LayoutRule::kAnyOutput: return {{kNhwc, kNhwc}, {kRows, kRows}, {kNhwc, kRows}};
  }
  return {};
}

}  // namespace

const ir::OpRegistry& Ops() {
  static const auto* registry = [] {
    auto* created = new ir::OpRegistry;
    ops::RegisterAll(*created);
    return created;
  }();
  return *registry;
}

Tensor InLayout(const Tensor& tensor, Layout layout) {
  if (tensor.rank() != 4 || tensor.type().layout == layout) return tensor;
  Tensor result(WithLayout(tensor.type(), layout));
  const Shape& s = tensor.shape();
  const int64_t bytes = ByteSize(tensor.dtype());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const int64_t n = i / (s[1] * s[2] * s[3]), c = i / (s[2] * s[3]) % s[1], h = i / s[3] % s[2], w = i % s[3];
    std::memcpy(static_cast<char*>(result.raw_data()) + Index(result.type(), n, c, h, w) * bytes,
                static_cast<const char*>(tensor.raw_data()) + Index(tensor.type(), n, c, h, w) * bytes, bytes);
  }
  return result;
}

KernelDesc DescOf(const OpCall& call, Layout in, Layout out) {
  const ir::OpSchema& schema = *Ops().FindOrNull(call.op);
  KernelDesc desc;
  desc.op = schema.name;
  for (const ir::AttributeSpec& spec : schema.attributes) {
    const auto it = call.attributes.find(spec.name);
    desc.attributes.emplace(spec.name, it != call.attributes.end() ? it->second : *spec.default_value);
  }
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const auto& operand = call.operands[i];
    const ir::OperandSpec& spec = schema.operands[std::min(i, schema.operands.size() - 1)];
    if (spec.parameter) {
      if (operand) desc.parameters[spec.name] = &*operand;
    } else {
      desc.inputs.push_back(operand ? std::make_optional(WithLayout(operand->type(), in)) : std::nullopt);
    }
  }
  const ir::Type result = TypeOf(call);
  for (const TensorType& type : result.elements()) desc.outputs.push_back(WithLayout(type, out));
  return desc;
}

absl::StatusOr<std::vector<Tensor>> RunCall(const KernelEntry& entry, const OpCall& call, const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, entry.create(desc));
  const ir::OpSchema& schema = *Ops().FindOrNull(call.op);
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  const auto allocate = [&](const TensorType& type) -> GuardedMemory& {
    const int misalignment = static_cast<int>(ByteSize(type.dtype));
    return *memory.emplace_back(std::make_unique<GuardedMemory>(type.byte_size(), misalignment));
  };
  std::vector<ConstBuffer> inputs;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (schema.operands[std::min(i, schema.operands.size() - 1)].parameter) continue;
    ConstBuffer& input = inputs.emplace_back();
    if (!call.operands[i]) continue;
    const Tensor tensor = InLayout(*call.operands[i], desc.input(static_cast<int>(inputs.size()) - 1).layout);
    GuardedMemory& to = allocate(tensor.type());
    if (to.size() > 0) std::memcpy(to.data(), tensor.raw_data(), to.size());
    input = {to.data(), to.size()};
  }
  std::vector<Buffer> outputs;
  for (const TensorType& type : desc.outputs) {
    GuardedMemory& to = allocate(type);
    to.FillRandom(7);
    outputs.push_back({to.data(), to.size()});
  }
  GuardedMemory scratch(kernel->scratch_bytes());
  scratch.FillRandom(8);
  TestThreads threads(desc.threads);
  RETURN_IF_ERROR(kernel->Run(inputs, outputs, {&threads, {scratch.data(), scratch.size()}}));
  if (!scratch.guards_intact()) return absl::InternalError("wrote beyond its scratch memory");
  for (const auto& guarded : memory) {
    if (!guarded->guards_intact()) return absl::InternalError("wrote beyond a result");
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor tensor(desc.outputs[i]);
    if (outputs[i].bytes > 0) std::memcpy(tensor.raw_data(), outputs[i].data, outputs[i].bytes);
    results.push_back(InLayout(tensor, Layout::kRowMajor));
  }
  return results;
}

std::string DifferenceFromReference(const KernelRegistry& kernels, const OpCall& call) {
  const auto wanted = Reference(call);
  if (!wanted.ok()) return absl::StrCat("reference: ", wanted.status().message());
  const KernelEntry& entry = *kernels.FindOrNull(Ops().FindOrNull(call.op)->name);
  for (const auto& [in, out] : LayoutsOf(entry.layout)) {
    for (const Isa isa : SupportedIsas()) {
      for (const int threads : {1, 3}) {
        KernelDesc desc = DescOf(call, in, out);
        desc.isa = isa;
        desc.threads = threads;
        const auto found = RunCall(entry, call, desc);
        const std::string where =
            absl::StrCat(call.op, " to ", ToString(desc.output()), " on ", IsaName(isa), ", ", threads, " threads: ");
        if (!found.ok()) return absl::StrCat(where, found.status().message());
        for (size_t i = 0; i < found->size(); ++i) {
          if (!SameBits((*found)[i], (*wanted)[i])) return absl::StrCat(where, "result ", i, " differs");
        }
      }
    }
  }
  return "";
}

}  // namespace fuselage::kernels
