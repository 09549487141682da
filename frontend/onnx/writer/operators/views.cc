// Operators that only move elements.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/writer/operators.h"
#include "ir/batch.h"

namespace fuselage::onnx::writer::operators::views {
namespace {

using Ints = std::vector<int64_t>;

// A 0 copies the input's dimension, unless zeros mean themselves.
absl::Status Reshape(const Call& c, const Shape& shape, bool allow_zero) {
  const bool zeros = allow_zero && std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (zeros) c.to.Require(14);
  ModelBuilder& node = c.Emit("Reshape", {c.in[0], c.Ints("shape", shape)});
  if (zeros) node.Int("allowzero", 1);
  return absl::OkStatus();
}

absl::Status WriteReshape(const Call& c) { return Reshape(c, c.op.GetInts("shape"), c.op.GetBool("allow_zero")); }

absl::Status WriteFlatten(const Call& c) {
  const int rank = c.type(0).rank();
  if (rank == 0) return Reshape(c, {1}, false);
  const auto axis = [&](const char* name) { return *NormalizeAxis(c.op.GetInt(name), rank); };
  const int start = axis("start_dim"), end = axis("end_dim");
  if (start == 1 && end == rank - 1) {
    c.Emit("Flatten", c.in).Int("axis", 1);
    return absl::OkStatus();
  }
  if (c.type(0).num_elements() == 0) return Reshape(c, c.result.tensor().shape, true);
  Shape shape(start, 0);
  shape.push_back(-1);
  shape.insert(shape.end(), c.type(0).shape.begin() + end + 1, c.type(0).shape.end());
  return Reshape(c, shape, false);
}

absl::Status WriteSqueeze(const Call& c) {
  Ints axes = c.op.GetInts("dims");
  for (int axis = 0; c.op.GetInts("dims").empty() && axis < c.type(0).rank(); ++axis) {
    if (c.type(0).shape[axis] == 1) axes.push_back(axis);
  }
  if (axes.empty()) {
    c.Emit("Identity", c.in);
  } else {
    c.Emit("Squeeze", {c.in[0], c.Ints("axes", axes)});
  }
  return absl::OkStatus();
}

absl::Status WriteUnsqueeze(const Call& c) {
  c.Emit("Unsqueeze", {c.in[0], c.Ints("axes", c.op.GetInts("dims"))});
  return absl::OkStatus();
}

absl::Status WriteExpand(const Call& c) {
  Shape shape = c.op.GetInts("shape");
  std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{1});  // Which broadcasts to what there is.
  if (const int64_t batch = c.op.GetInt(ir::kBatchAttribute); batch > 0) shape[0] = batch;
  c.Emit("Expand", {c.in[0], c.Ints("shape", shape)});
  return absl::OkStatus();
}

absl::Status WritePermute(const Call& c) {
  Ints dims = c.op.GetInts("dims");
  for (int64_t& dim : dims) dim = *NormalizeAxis(dim, c.type(0).rank());
  c.Emit("Transpose", c.in).Ints("perm", dims);
  return absl::OkStatus();
}

absl::Status WriteTranspose(const Call& c) {
  Ints dims(c.type(0).rank());
  std::iota(dims.begin(), dims.end(), 0);
  const int rank = c.type(0).rank();
  std::swap(dims[*NormalizeAxis(c.op.GetInt("dim0"), rank)], dims[*NormalizeAxis(c.op.GetInt("dim1"), rank)]);
  c.Emit("Transpose", c.in).Ints("perm", dims);
  return absl::OkStatus();
}

absl::Status WriteCat(const Call& c) {
  c.Emit("Concat", c.in).Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

absl::Status WriteSlice(const Call& c) {
  const auto list = [&](const char* name, bool present) {
    return present ? c.Ints(name, c.op.GetInts(name)) : std::string();
  };
  c.Emit("Slice", {c.in[0], list("starts", true), list("ends", true), list("axes", !c.op.GetInts("axes").empty()),
                   list("steps", !c.op.GetInts("steps").empty())});
  return absl::OkStatus();
}

absl::Status WriteSplit(const Call& c) {
  Values parts;
  for (size_t i = 0; i < c.result.elements().size(); ++i) parts.push_back(c.Element(i));
  c.to.Emit("Split", {c.in[0], c.Ints("sizes", c.op.GetInts("sizes"))}, parts).Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

absl::Status WriteGetItem(const Call& c) {
  const int64_t index = c.op.GetInt("index"), size = static_cast<int64_t>(c.types[0]->elements().size());
  c.Emit("Identity", {absl::StrCat(c.in[0], ":", index < 0 ? index + size : index)});
  return absl::OkStatus();
}

absl::Status WritePad(const Call& c) {
  const std::string& mode = c.op.GetString("mode");
  if (mode == "wrap") c.to.Require(19);
  const double value = c.type(0).quant ? c.type(0).quant->zero_point() : c.op.GetFloat("value");
  c.Emit("Pad", {c.in[0], c.Ints("pads", c.op.GetInts("pads")), value == 0 ? "" : c.Number("value", value, c.dtype())})
      .String("mode", mode);
  return absl::OkStatus();
}

// The frames as an axis, padded; a slice of it for each tap.
absl::Status WriteStackFrames(const Call& c) {
  const Shape &input = c.type(0).shape, &result = c.result.tensor().shape;
  if (c.result.tensor().num_elements() == 0) return c.Declined("no elements");
  const int64_t frames = c.op.GetInt("frames"), stride = c.op.GetInts("stride")[0];
  const int64_t span = (result[0] / (input[0] / frames) - 1) * stride + 1;
  const Ints& padding = c.op.GetInts("padding");
  const bool as_rows = c.op.GetBool("as_rows");
  Ints apart = {-1, frames, input[1], input[2], input[3]};
  apart.insert(apart.begin() + (as_rows ? 4 : 2), 1);  // The taps.
  const std::string framed = c.Suffixed("frames"), padded = c.Suffixed("padded"), joined = c.Suffixed("joined");
  c.to.Emit("Reshape", {c.in[0], c.Ints("frames:shape", apart)}, framed);
  const double zero = c.type(0).quant ? c.type(0).quant->zero_point() : 0;
  c.to.Emit("Pad",
            {framed, c.Ints("pads", {0, padding[0], 0, 0, 0, 0, 0, padding[1], 0, 0, 0, 0}),
             c.Number("zero", zero, c.dtype())},
            padded);
  Values taps;
  for (int64_t tap = 0; tap < c.op.GetInts("kernel_size")[0]; ++tap) {
    const int64_t first = tap * c.op.GetInts("dilation")[0];
    taps.push_back(c.Suffixed(absl::StrCat("tap", tap)));
    c.to.Emit("Slice",
              {padded, c.Ints(absl::StrCat("starts", tap), {first}), c.Ints(absl::StrCat("ends", tap), {first + span}),
               c.Ints(absl::StrCat("axes", tap), {1}), c.Ints(absl::StrCat("steps", tap), {stride})},
              taps.back());
  }
  c.to.Emit("Concat", taps, joined).Int("axis", as_rows ? 4 : 2);
  c.Emit("Reshape", {joined, c.Ints("shape", {-1, result[1], result[2], result[3]})});
  return absl::OkStatus();
}

}  // namespace

void Register(Operators& operators) {
  operators.Add({
      {"cat", WriteCat, "Concat"},
      {"expand", WriteExpand, "Expand"},
      {"flatten", WriteFlatten, "Flatten"},
      {"getitem", WriteGetItem, "Identity"},
      {"pad", WritePad, "Pad"},
      {"permute", WritePermute, "Transpose"},
      {"reshape", WriteReshape, "Reshape"},
      {"slice", WriteSlice, "Slice"},
      {"split", WriteSplit, "Split"},
      {"squeeze", WriteSqueeze, "Squeeze"},
      {"stack_frames", WriteStackFrames, "Concat"},
      {"transpose", WriteTranspose, "Transpose"},
      {"unsqueeze", WriteUnsqueeze, "Unsqueeze"},
  });
}

}  // namespace fuselage::onnx::writer::operators::views
