// Pools, and what puts maxima back where they came from.
#include <cstdint>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "frontend/onnx/spatial.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::pool {
namespace {

using Ints = std::vector<int64_t>;

// a op c, for integers.
absl::StatusOr<Value> WithInteger(Call& call, absl::string_view suffix, absl::string_view op, const Value& a,
                                  int64_t c) {
  ASSIGN_OR_RETURN(const Value other,
                   call.Scalar(absl::StrCat(suffix, ".scalar"), a.type().dtype, static_cast<double>(c)));
  return call.EmitHelper(suffix, op, {a, other});
}

// Places in planes [rows, columns], counted row by row, counted column by column.
absl::StatusOr<Value> ColumnMajor(Call& call, const Value& places, const Shape& planes) {
  const int64_t rows = planes[0], columns = planes[1];
  ASSIGN_OR_RETURN(const Value column, WithInteger(call, "column", "remainder", places, columns));
  ASSIGN_OR_RETURN(const Value before, WithInteger(call, "columns_before", "mul", column, rows));
  ASSIGN_OR_RETURN(const Value row, WithInteger(call, "row", "div", places, columns));
  return call.EmitHelper("column_major", "add", {before, row});
}

// Places in the planes of [N, C, spatial...] as places in all of it.
absl::StatusOr<Value> AcrossPlanes(Call& call, const Value& places, const Shape& shape) {
  Shape planes(shape.size(), 1);
  planes[0] = shape[0];
  planes[1] = shape[1];
  ASSIGN_OR_RETURN(Tensor starts, ChargedTensor(call, DType::kI64, planes));
  const int64_t plane = std::accumulate(shape.begin() + 2, shape.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < starts.num_elements(); ++i) starts.data<int64_t>()[i] = i * plane;
  const Value start = Builder::Constant(call.name() + ".planes", std::move(starts));
  return call.EmitHelper("indices", "add", {places, start});
}

// Output 1 says where in the whole input each maximum is.
absl::Status ConvertMaxPool(Call& call) {
  const Shape input = call.shape(0);
  ASSIGN_OR_RETURN(Spatial spatial, ReadSpatial(call, input, {}));
  ResolvePadding(input, &spatial);
  ASSIGN_OR_RETURN(const bool ceil_mode, call.Flag("ceil_mode", false));
  ASSIGN_OR_RETURN(const bool column_major, call.Flag("storage_order", false));
  const std::string target = SpatialTarget("max_pool", spatial.dims);
  const AttributeMap attributes = {{"kernel_size", spatial.kernel},
                                   {"stride", spatial.strides},
                                   {"padding", spatial.padding},
                                   {"dilation", spatial.dilations},
                                   {"ceil_mode", ceil_mode}};
  if (!call.wants(1)) return call.Result(target, call.operands(), attributes);
  if (column_major && spatial.dims > 2) {
    return absl::UnimplementedError("found storage_order = 1 in three dimensions, wanted at most two");
  }
  ASSIGN_OR_RETURN(const std::vector<Value> values,
                   call.builder().EmitTuple(call.name(), target + "_with_indices", call.operands(), attributes,
                                            {call.wants(0), true}));
  Value places = values[1];
  if (column_major && spatial.dims == 2) {
    ASSIGN_OR_RETURN(places, ColumnMajor(call, places, {input[2], input[3]}));
  }
  ASSIGN_OR_RETURN(places, AcrossPlanes(call, places, input));
  call.Set(0, values[0]);
  call.Set(1, std::move(places));
  return absl::OkStatus();
}

absl::Status ConvertAveragePool(Call& call) {
  ASSIGN_OR_RETURN(WindowedCall pool, ReadAveragePool(call, call.shape(0)));
  return call.Result(pool.target, call.operands(), std::move(pool.attributes));
}

// Zeros, with each value where the indices say, in the shape that a pool with these attributes would have read; where
// a larger output_shape is asked for, zeros behind.
absl::Status ConvertMaxUnpool(Call& call) {
  const Shape input = call.shape(0);
  ASSIGN_OR_RETURN(const Spatial spatial, ReadSpatial(call, input, {}));
  Shape shape = {input[0], input[1]};
  for (int i = 0; i < spatial.dims; ++i) {
    const int64_t padding = spatial.padding[i] + spatial.padding[i + spatial.dims];
    shape.push_back((input[i + 2] - 1) * spatial.strides[i] + spatial.kernel[i] - padding);
    if (shape.back() < 1) {
      return absl::InvalidArgumentError(absl::StrCat("found pads ", ToString(spatial.padding), " for an input ",
                                                     ToString(call.type(0)), ", wanted a result with elements"));
    }
  }
  Ints pads(2 * shape.size(), 0);
  if (call.has(2)) {
    ASSIGN_OR_RETURN(const Ints stated, call.ConstantInts(2));
    for (size_t i = 0; i < shape.size(); ++i) {
      if (stated.size() != shape.size() || stated[i] < shape[i]) {
        return absl::InvalidArgumentError(
            absl::StrCat("input 2: found ", ToString(stated), ", wanted at least ", ToString(shape)));
      }
      pads[shape.size() + i] = stated[i] - shape[i];
    }
  }
  const Ints line = {-1};
  ASSIGN_OR_RETURN(const int64_t size, CheckedNumElements(shape));
  ASSIGN_OR_RETURN(Tensor tensor, ChargedTensor(call, call.type(0).dtype, {size}));
  const Value zeros = Builder::Constant(call.name() + ".zeros", std::move(tensor));
  ASSIGN_OR_RETURN(const Value values, call.EmitHelper("values", "reshape", {call.operand(0)}, {{"shape", line}}));
  ASSIGN_OR_RETURN(const Value indices, call.EmitHelper("indices", "reshape", {call.operand(1)}, {{"shape", line}}));
  ASSIGN_OR_RETURN(const Value flat, call.EmitHelper("scatter", "scatter", {zeros, indices, values}, {{"dim", 0}}));
  if (pads == Ints(pads.size(), 0)) return call.Result("reshape", {flat}, {{"shape", shape}});
  ASSIGN_OR_RETURN(const Value unpooled, call.EmitHelper("unpooled", "reshape", {flat}, {{"shape", shape}}));
  return call.Result("pad", {unpooled}, {{"pads", pads}});
}

// Of one spatial axis it is a mean as any other: tf2onnx writes those of layer norms so.
absl::Status ConvertGlobalAveragePool(Call& call) {
  if (call.rank(0) != 3) return call.Result("global_avg_pool", call.operands());
  return call.Result("mean", call.operands(), {{"dims", Ints{2}}, {"keepdim", true}});
}

constexpr char kAveragePool[] =
    "auto_pad=STRING ceil_mode=INT count_include_pad=INT dilations=INTS kernel_shape=INTS pads=INTS "
    "strides=INTS";
constexpr char kMaxPool[] =
    "auto_pad=STRING ceil_mode=INT dilations=INTS kernel_shape=INTS pads=INTS storage_order=INT "
    "strides=INTS";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"AveragePool", 1, {1, 1}, {1, 1}, kAveragePool, ConvertAveragePool},
      {"GlobalAveragePool", 1, {1, 1}, {1, 1}, "", ConvertGlobalAveragePool},
      {"MaxPool", 1, {1, 1}, {1, 2}, kMaxPool, ConvertMaxPool},
      {"MaxUnpool", 9, {2, 3}, {1, 1}, "kernel_shape=INTS pads=INTS strides=INTS", ConvertMaxUnpool},
  });
}

}  // namespace fuselage::onnx::converters::pool
