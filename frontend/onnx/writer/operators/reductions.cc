// Norms, pools, and what runs along axes.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer::operators::reductions {
namespace {

using Ints = std::vector<int64_t>;

std::string OrFilled(const Call& c, int i, const char* suffix, Shape shape, double value) {
  if (c.has(i)) return c.in[i];
  Tensor filled(c.dtype(), std::move(shape));
  for (int64_t k = 0; k < filled.num_elements(); ++k) filled.Set(k, value);
  return c.Constant(suffix, filled);
}

absl::Status WriteBatchNorm(const Call& c) {
  if (c.op.GetBool("training") || !c.has(3) || !c.has(4)) return c.Declined(" with the statistics of the batch");
  const Shape channels = {c.type(0).shape[1]};
  c.Emit("BatchNormalization",
         {c.in[0], OrFilled(c, 1, "weight", channels, 1), OrFilled(c, 2, "bias", channels, 0), c.in[3], c.in[4]})
      .Float("epsilon", static_cast<float>(c.op.GetFloat("eps")));
  return absl::OkStatus();
}

// layer_norm, rms_norm
absl::Status WriteTrailingNorm(const Call& c) {
  const Shape& shape = c.op.GetInts("normalized_shape");
  c.to.Require(c.op.schema().name == "rms_norm" ? 23 : 17);
  c.Emit(c.onnx, {c.in[0], OrFilled(c, 1, "weight", shape, 1), c.has(2) ? c.in[2] : ""})
      .Int("axis", -static_cast<int64_t>(shape.size()))
      .Float("epsilon", static_cast<float>(c.op.GetFloat("eps")));
  return absl::OkStatus();
}

// group_norm, instance_norm
absl::Status WriteChannelNorm(const Call& c) {
  const Shape channels = {c.type(0).shape[1]};
  const bool grouped = c.op.schema().FindAttributeOrNull("num_groups") != nullptr;
  if (grouped) c.to.Require(21);
  if (c.type(0).rank() < 3) return c.Declined(absl::StrCat(" of rank ", c.type(0).rank()));
  ModelBuilder& node =
      c.Emit(c.onnx, {c.in[0], OrFilled(c, 1, "weight", channels, 1), OrFilled(c, 2, "bias", channels, 0)})
          .Float("epsilon", static_cast<float>(c.op.GetFloat("eps")));
  if (grouped) node.Int("num_groups", c.op.GetInt("num_groups"));
  return absl::OkStatus();
}

// avg_pool, max_pool
absl::Status WritePool(const Call& c) {
  const bool max = std::string(c.onnx) == "MaxPool";
  const bool codes = c.dtype() == DType::kU8 || c.dtype() == DType::kI8;
  if (!IsFloat(c.dtype()) && !codes) return c.Declined(absl::StrCat(" of ", DTypeName(c.dtype())));
  ModelBuilder& node = c.Emit(c.onnx, c.in)
                           .Ints("kernel_shape", c.op.GetInts("kernel_size"))
                           .Ints("strides", c.op.GetInts("stride"))
                           .Ints("pads", c.op.GetInts("padding"))
                           .Int("ceil_mode", c.op.GetBool("ceil_mode"));
  if (max) {
    node.Ints("dilations", c.op.GetInts("dilation"));
  } else {
    node.Int("count_include_pad", c.op.GetBool("count_include_pad"));
  }
  return absl::OkStatus();
}

// Equal windows side by side, where the sizes divide.
absl::Status WriteAdaptivePool(const Call& c) {
  const Shape &from = c.type(0).shape, &to = c.result.tensor().shape;
  Ints kernel;
  for (size_t axis = 2; axis < to.size(); ++axis) {
    if (to[axis] == 0 || from[axis] % to[axis] != 0) {
      return c.Declined(absl::StrCat(" from ", ToString(from), " to ", ToString(to)));
    }
    kernel.push_back(from[axis] / to[axis]);
  }
  if (std::all_of(to.begin() + 2, to.end(), [](int64_t size) { return size == 1; })) {
    c.Emit("GlobalAveragePool", c.in);
  } else {
    c.Emit("AveragePool", c.in).Ints("kernel_shape", kernel).Ints("strides", kernel);
  }
  return absl::OkStatus();
}

absl::Status WriteReduce(const Call& c) {
  c.EmitReduction(c.onnx, c.in[0], c.op.GetBool("keepdim"), c.name);
  return absl::OkStatus();
}

// softmax, log_softmax, hardmax
absl::Status WriteSoftmax(const Call& c) {
  c.Emit(c.onnx, c.in).Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

// argmax, argmin
absl::Status WriteArgMax(const Call& c) {
  c.Emit(c.onnx, c.in)
      .Int("axis", c.op.GetInt("dim"))
      .Int("keepdims", c.op.GetBool("keepdim"))
      .Int("select_last_index", c.op.GetBool("select_last_index"));
  return absl::OkStatus();
}

absl::Status WriteCumSum(const Call& c) {
  c.Emit(c.onnx, {c.in[0], c.Number("axis", static_cast<double>(c.op.GetInt("dim")), DType::kI64)})
      .Int("exclusive", c.op.GetBool("exclusive"))
      .Int("reverse", c.op.GetBool("reverse"));
  return absl::OkStatus();
}

}  // namespace

void Register(Operators& operators) {
  operators.Add({
      {"adaptive_avg_pool", WriteAdaptivePool, "AveragePool"},
      {"amax", WriteReduce, "ReduceMax"},
      {"amin", WriteReduce, "ReduceMin"},
      {"argmax", WriteArgMax, "ArgMax"},
      {"argmin", WriteArgMax, "ArgMin"},
      {"avg_pool", WritePool, "AveragePool"},
      {"batch_norm", WriteBatchNorm, "BatchNormalization"},
      {"cumsum", WriteCumSum, "CumSum"},
      {"global_avg_pool", WriteSame, "GlobalAveragePool"},
      {"group_norm", WriteChannelNorm, "GroupNormalization"},
      {"hardmax", WriteSoftmax, "Hardmax"},
      {"instance_norm", WriteChannelNorm, "InstanceNormalization"},
      {"layer_norm", WriteTrailingNorm, "LayerNormalization"},
      {"log_softmax", WriteSoftmax, "LogSoftmax"},
      {"logsumexp", WriteReduce, "ReduceLogSumExp"},
      {"max_pool", WritePool, "MaxPool"},
      {"mean", WriteReduce, "ReduceMean"},
      {"prod", WriteReduce, "ReduceProd"},
      {"rms_norm", WriteTrailingNorm, "RMSNormalization"},
      {"softmax", WriteSoftmax, "Softmax"},
      {"sum", WriteReduce, "ReduceSum"},
  });
}

}  // namespace fuselage::onnx::writer::operators::reductions
