#include "tools/peers/cudnn/convolution.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace fuselage::peers::cudnn {
namespace {

constexpr int64_t kAlignment = 16;  // Bytes: what vectors of 128 bits want.

// NHWC.
std::vector<int64_t> Strides(const std::array<int64_t, 4>& d) { return {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]}; }

std::vector<int64_t> Vector(const std::array<int64_t, 4>& d) { return {d.begin(), d.end()}; }

}  // namespace

absl::StatusOr<Descriptor> CurrentDevice(const Library& library) {
  const int32_t first = 0;
  return Builder(library, kDeviceProperties, "the device").Set(kDeviceId, kInt32Value, 1, &first).Finish();
}

absl::StatusOr<Descriptor> DescribedDevice(const Library& library, const std::string& json) {
  return Builder(library, kDeviceProperties, "the device that is described")
      .Set(kDeviceJson, kCharValue, static_cast<int64_t>(json.size()) + 1, json.c_str())
      .Finish();
}

absl::StatusOr<void*> FusedConvolution::Keep(absl::StatusOr<Descriptor> made) {
  RETURN_IF_ERROR(made.status());
  kept_.push_back(*std::move(made));
  return kept_.back().get();
}

absl::StatusOr<void*> FusedConvolution::Tensor(int64_t id, int type, const std::array<int64_t, 4>& dims,
                                               bool is_virtual) {
  if (!is_virtual) ids_.push_back(id);
  return Keep(Builder(*library_, kTensor, absl::StrCat("tensor ", id))
                  .Ints(kTensorId, {id})
                  .Enum(kTensorDataType, kDataTypeValue, type)
                  .Ints(kTensorDimensions, Vector(dims))
                  .Ints(kTensorStrides, Strides(dims))
                  .Ints(kTensorAlignment, {kAlignment})
                  .Set(kTensorIsVirtual, kBooleanValue, 1, &is_virtual)
                  .Finish());
}

absl::Status FusedConvolution::AddConvolution(const Convolution& c, void* sums) {
  const bool int8 = c.dtype == DType::kI8;
  ASSIGN_OR_RETURN(void* const input, Tensor(kInput, int8 ? kInt8 : kHalf, c.input, false));
  ASSIGN_OR_RETURN(void* const weight, Tensor(kWeight, int8 ? kInt8 : kHalf, c.weight, false));
  ASSIGN_OR_RETURN(void* const convolution,
                   Keep(Builder(*library_, kConvolution, "convolution")
                            .Enum(kConvolutionPrecision, kDataTypeValue, int8 ? kInt32 : kFloat)
                            .Enum(kConvolutionMode, kConvolutionModeValue, kCrossCorrelation)
                            .Ints(kConvolutionRank, {2})
                            .Ints(kConvolutionPaddingsBefore, {c.padding[0], c.padding[1]})
                            .Ints(kConvolutionPaddingsAfter, {c.padding[2], c.padding[3]})
                            .Ints(kConvolutionStrides, c.stride)
                            .Ints(kConvolutionDilations, c.dilation)
                            .Finish()));
  ASSIGN_OR_RETURN(void* const operation, Keep(Builder(*library_, kConvolutionForward, "the convolution's operation")
                                                   .Refer(kForwardInput, input)
                                                   .Refer(kForwardWeight, weight)
                                                   .Refer(kForwardOutput, sums)
                                                   .Refer(kForwardConvolution, convolution)
                                                   .Float(kForwardAlpha, 1)
                                                   .Float(kForwardBeta, 0)
                                                   .Finish()));
  operations_.push_back(operation);
  return absl::OkStatus();
}

absl::Status FusedConvolution::AddPointwise(int mode, void* other, void* output, void** values) {
  if (output == nullptr) {
    ASSIGN_OR_RETURN(output, Tensor(next_virtual_++, kFloat, output_, true));
  }
  ASSIGN_OR_RETURN(void* const pointwise, Keep(Builder(*library_, kPointwise, "pointwise")
                                                   .Enum(kPointwiseMode, kPointwiseModeValue, mode)
                                                   .Enum(kPointwisePrecision, kDataTypeValue, kFloat)
                                                   .Finish()));
  Builder operation(*library_, kPointwiseOperation, "pointwise operation");
  operation.Refer(kOperationPointwise, pointwise).Refer(kOperationInput, *values).Refer(kOperationOutput, output);
  if (other != nullptr) operation.Refer(kOperationOther, other);
  ASSIGN_OR_RETURN(void* const added, Keep(operation.Finish()));
  operations_.push_back(added);
  *values = output;
  return absl::OkStatus();
}

absl::StatusOr<FusedConvolution> FusedConvolution::Create(const Library& library, const Convolution& c) {
  if (c.dtype != DType::kI8 && c.dtype != DType::kF16) {
    return absl::InvalidArgumentError(absl::StrCat("found ", DTypeName(c.dtype), ", wanted i8 or f16"));
  }
  const bool int8 = c.dtype == DType::kI8;
  const std::array<int64_t, 4> channels = {1, c.output[1], 1, 1};
  FusedConvolution made(library);
  made.output_ = c.output;
  ASSIGN_OR_RETURN(void* values, made.Tensor(made.next_virtual_++, int8 ? kInt32 : kFloat, c.output, true));
  RETURN_IF_ERROR(made.AddConvolution(c, values));
  if (int8) {
    ASSIGN_OR_RETURN(void* const scale, made.Tensor(kScale, kFloat, channels, false));
    RETURN_IF_ERROR(made.AddPointwise(kMultiply, scale, nullptr, &values));
  }
  ASSIGN_OR_RETURN(void* const bias, made.Tensor(kBias, int8 ? kFloat : kHalf, channels, false));
  ASSIGN_OR_RETURN(void* const output, made.Tensor(kOutput, int8 ? kInt8 : kHalf, c.output, false));
  const bool sums_are_last = !c.residual && !c.relu;
  RETURN_IF_ERROR(made.AddPointwise(kAdd, bias, sums_are_last ? output : nullptr, &values));
  if (c.residual) {
    ASSIGN_OR_RETURN(void* const residual, made.Tensor(kResidual, int8 ? kInt8 : kHalf, c.output, false));
    RETURN_IF_ERROR(made.AddPointwise(kAdd, residual, c.relu ? nullptr : output, &values));
  }
  if (c.relu) RETURN_IF_ERROR(made.AddPointwise(kRelu, nullptr, output, &values));
  ASSIGN_OR_RETURN(made.graph_, Builder(library, kOperationGraph, "graph")
                                    .Set(kGraphOperations, kDescriptorValue,
                                         static_cast<int64_t>(made.operations_.size()), made.operations_.data())
                                    .Finish());
  return made;
}

absl::StatusOr<std::vector<Descriptor>> FusedConvolution::CandidatesBy(int mode, void* device) const {
  ASSIGN_OR_RETURN(const Descriptor heuristics, Builder(*library_, kHeuristics, "heuristics")
                                                    .Refer(kHeuristicsGraph, graph_.get())
                                                    .Enum(kHeuristicsMode, kHeuristicModeValue, mode)
                                                    .Refer(kHeuristicsDevice, device)
                                                    .Finish());
  int64_t most = 0, count = 0;
  RETURN_IF_ERROR(library_->Check(
      library_->BackendGetAttribute(heuristics.get(), kHeuristicsResults, kDescriptorValue, 0, &most, nullptr),
      "the heuristics' results"));
  std::vector<Descriptor> candidates;
  std::vector<void*> pointers;
  for (int64_t i = 0; i < most; ++i) {
    ASSIGN_OR_RETURN(Descriptor candidate, Empty(*library_, kEngineConfig, "a configuration"));
    pointers.push_back(candidate.get());
    candidates.push_back(std::move(candidate));
  }
  // It leaves out those that turn out not to work, and says how many are left.
  RETURN_IF_ERROR(library_->Check(library_->BackendGetAttribute(heuristics.get(), kHeuristicsResults, kDescriptorValue,
                                                                most, &count, pointers.data()),
                                  "the heuristics' results"));
  while (static_cast<int64_t>(candidates.size()) > count) candidates.pop_back();
  return candidates;
}

absl::StatusOr<std::vector<Descriptor>> FusedConvolution::Candidates(void* device) const {
  ASSIGN_OR_RETURN(std::vector<Descriptor> candidates, CandidatesBy(kByHeuristics, device));
  if (!candidates.empty()) return candidates;
  return CandidatesBy(kFallback, device);
}

absl::StatusOr<Plan> FusedConvolution::PlanOf(void* candidate, void* device) const {
  ASSIGN_OR_RETURN(const Descriptor engine, Empty(*library_, kEngine, "engine"));
  void* const engine_pointer = engine.get();
  int64_t number = 0, count = 0;
  RETURN_IF_ERROR(library_->Check(library_->BackendGetAttribute(candidate, kConfigEngine, kDescriptorValue, 1, &count,
                                                                const_cast<void**>(&engine_pointer)),
                                  "engine"));
  RETURN_IF_ERROR(library_->Check(
      library_->BackendGetAttribute(engine.get(), kEngineIndex, kInt64Value, 1, &count, &number), "engine"));
  ASSIGN_OR_RETURN(Descriptor descriptor, Builder(*library_, kPlan, absl::StrCat("plan of engine ", number))
                                              .Refer(kPlanConfig, candidate)
                                              .Refer(kPlanDevice, device)
                                              .Finish());
  Plan plan{std::move(descriptor), 0, number};
  RETURN_IF_ERROR(library_->Check(library_->BackendGetAttribute(plan.descriptor.get(), kPlanWorkspaceBytes, kInt64Value,
                                                                1, &count, &plan.workspace_bytes),
                                  "workspace"));
  return plan;
}

absl::Status FusedConvolution::Execute(void* handle, const Plan& plan, const std::array<void*, 6>& pointers,
                                       void* workspace) const {
  std::vector<void*> used;
  for (const int64_t id : ids_) used.push_back(pointers[id - 1]);
  ASSIGN_OR_RETURN(const Descriptor pack,
                   Builder(*library_, kVariantPack, "operands")
                       .Ints(kPackIds, ids_)
                       .Set(kPackPointers, kPointerValue, static_cast<int64_t>(used.size()), used.data())
                       .Set(kPackWorkspace, kPointerValue, 1, &workspace)
                       .Finish());
  return library_->Check(library_->BackendExecute(handle, plan.descriptor.get(), pack.get()),
                         absl::StrCat("engine ", plan.engine));
}

}  // namespace fuselage::peers::cudnn
