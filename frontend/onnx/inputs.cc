#include "frontend/onnx/inputs.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

using schema::GraphProto;
using schema::TensorShapeProto;
using schema::ValueInfoProto;

// TensorFlow's open dimensions may come as -1.
bool IsFixed(const TensorShapeProto::Dimension& dim) { return dim.has_dim_value() && dim.dim_value() != -1; }

// What binds dimensions of the same name; empty: nothing. PaddlePaddle calls all that it does not know "?".
std::string Symbol(const TensorShapeProto::Dimension& dim) { return dim.dim_param() == "?" ? "" : dim.dim_param(); }

std::string DimensionName(const TensorShapeProto::Dimension& dim) {
  if (IsFixed(dim)) return absl::StrCat(dim.dim_value());
  return Symbol(dim).empty() ? "?" : Symbol(dim);
}

std::string ShapeName(const TensorShapeProto& shape) {
  return absl::StrCat(
      "[", absl::StrJoin(shape.dim(), ",", [](std::string* out, const auto& dim) { *out += DimensionName(dim); }), "]");
}

absl::StatusOr<DType> CheckType(const ValueInfoProto& input) {
  if (!input.has_type()) return absl::InvalidArgumentError("found no type, wanted a tensor");
  if (!input.type().has_tensor_type()) {
    return absl::UnimplementedError("found a sequence, map, optional or sparse tensor, wanted a tensor");
  }
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    if (IsFixed(dim) && dim.dim_value() < 0) {
      return absl::InvalidArgumentError(absl::StrCat("found the dimension ", dim.dim_value(), ", wanted one >= 0"));
    }
  }
  return ToDType(input.type().tensor_type().elem_type());
}

using Symbols = std::map<std::string, int64_t>;

// Whether the dimensions that the file fixes are those of `shape`.
bool Agrees(const TensorShapeProto& stated, const Shape& shape) {
  if (stated.dim_size() != static_cast<int>(shape.size())) return false;
  for (int i = 0; i < stated.dim_size(); ++i) {
    if (IsFixed(stated.dim(i)) && stated.dim(i).dim_value() != shape[i]) return false;
  }
  return true;
}

constexpr int64_t kUnknown = -1;

// Learns the symbols; one that given shapes bind to two sizes is unknown to other inputs.
absl::Status BindShape(const ValueInfoProto& input, const Shape& shape, Symbols* symbols) {
  ASSIGN_OR_RETURN(const int64_t count, CheckedNumElements(shape));
  static_cast<void>(count);
  if (!input.type().tensor_type().has_shape()) return absl::OkStatus();
  const TensorShapeProto& stated = input.type().tensor_type().shape();
  if (stated.dim_size() != static_cast<int>(shape.size())) {
    return UsageError(absl::StrCat("found the shape ", ToString(shape), ", wanted one of as many dimensions as ",
                                   ShapeName(stated), " in the file"));
  }
  for (int i = 0; i < stated.dim_size(); ++i) {
    if (Symbol(stated.dim(i)).empty()) continue;
    const auto [it, inserted] = symbols->emplace(Symbol(stated.dim(i)), shape[i]);
    if (it->second != shape[i]) it->second = kUnknown;
  }
  return absl::OkStatus();
}

// "input:1,3,<H>,<W>", with what the user must put in left as its symbol.
std::string WantedShape(const ValueInfoProto& input, const std::vector<int64_t>& known) {
  const TensorShapeProto& stated = input.type().tensor_type().shape();
  std::vector<std::string> dims;
  for (int i = 0; i < stated.dim_size(); ++i) {
    dims.push_back(known[i] >= 0 ? absl::StrCat(known[i]) : absl::StrCat("<", DimensionName(stated.dim(i)), ">"));
  }
  if (!input.type().tensor_type().has_shape()) dims = {"<dimensions>"};
  return absl::StrCat(input.name(), ":", absl::StrJoin(dims, ","));
}

// Fixed dimensions, symbols that an input's given shape bound, those of `samples` but for how many they are, and 1 for
// a symbolic first one; kUnknown where nothing says.
std::vector<int64_t> KnownDimensions(const TensorShapeProto& stated, const Symbols& symbols, const Shape& samples) {
  std::vector<int64_t> known;
  const int added = static_cast<int>(samples.size()) - stated.dim_size();  // Dimensions in front.
  for (int i = 0; i < stated.dim_size(); ++i) {
    const auto& dim = stated.dim(i);
    const auto it = symbols.find(Symbol(dim));
    if (IsFixed(dim)) {
      known.push_back(dim.dim_value());
    } else if (it != symbols.end() && it->second != kUnknown) {
      known.push_back(it->second);
    } else if ((added == 0 || added == 1) && i + added > 0) {
      known.push_back(samples[i + added]);
    } else {
      known.push_back(i == 0 ? 1 : kUnknown);
    }
  }
  return known;
}

}  // namespace

absl::StatusOr<std::map<std::string, TensorType>> BindInputs(const GraphProto& graph, const LoadOptions& options) {
  std::set<std::string> fixed;  // Inputs with a value known now.
  for (const auto& initializer : graph.initializer()) fixed.insert(initializer.name());
  for (const auto& [name, value] : options.constants) fixed.insert(name);

  std::map<std::string, TensorType> types;
  std::vector<const ValueInfoProto*> inputs;
  std::set<std::string> names;
  for (const auto& input : graph.input()) {
    names.insert(input.name());
    if (fixed.count(input.name()) > 0) continue;
    absl::StatusOr<DType> dtype = CheckType(input);
    if (!dtype.ok()) return Annotate(dtype.status(), absl::StrCat("input ", Quote(input.name())));
    types[input.name()].dtype = *dtype;
    inputs.push_back(&input);
  }
  for (const auto& [name, shape] : options.shapes) {
    if (types.count(name) == 0) {
      return UsageError(absl::StrCat(
          "found a shape of ", Quote(name), ", wanted one of the inputs ",
          absl::StrJoin(types, ", ", [](std::string* out, const auto& entry) { *out += Quote(entry.first); })));
    }
  }
  for (const auto& [name, value] : options.constants) {
    if (names.count(name) == 0) return UsageError(absl::StrCat("found a constant for ", Quote(name), ", no input"));
  }

  Symbols symbols;
  for (const ValueInfoProto* input : inputs) {
    const auto it = options.shapes.find(input->name());
    if (it == options.shapes.end()) continue;
    RETURN_IF_ERROR(Annotate(BindShape(*input, it->second, &symbols), absl::StrCat("input ", Quote(input->name()))));
    types[input->name()].shape = it->second;
  }
  std::string missing;
  for (const ValueInfoProto* input : inputs) {
    if (options.shapes.count(input->name()) > 0) continue;
    const auto samples = options.sample_shapes.find(input->name());
    const std::vector<int64_t> known =
        KnownDimensions(input->type().tensor_type().shape(), symbols,
                        samples == options.sample_shapes.end() ? Shape() : samples->second);
    bool bound = input->type().tensor_type().has_shape();
    for (int64_t dim : known) bound = bound && dim >= 0;
    if (!bound) {
      absl::StrAppend(&missing, "\n  ", WantedShape(*input, known));
      continue;
    }
    absl::StatusOr<int64_t> count = CheckedNumElements(known);
    if (!count.ok()) return Annotate(count.status(), absl::StrCat("input ", Quote(input->name())));
    types[input->name()].shape = known;
  }
  if (!missing.empty())
    return UsageError(absl::StrCat("found dimensions that nothing binds, wanted the shapes", missing));
  return types;
}

absl::StatusOr<std::pair<std::string, Shape>> ParseShape(absl::string_view text) {
  const size_t colon = text.rfind(':');
  Shape shape;
  bool valid = colon != absl::string_view::npos && colon > 0;
  if (valid && colon + 1 < text.size()) {
    for (absl::string_view part : absl::StrSplit(text.substr(colon + 1), ',')) {
      int64_t dim = -1;
      valid = valid && absl::SimpleAtoi(part, &dim) && dim >= 0;
      shape.push_back(dim);
    }
  }
  if (!valid) {
    return UsageError(absl::StrCat("found the shape ", Quote(text), ", wanted name:dimensions, as input:1,3,224,224"));
  }
  return std::make_pair(std::string(text.substr(0, colon)), shape);
}

bool HasOpenBatch(const ValueInfoProto& input) {
  const auto& type = input.type().tensor_type();
  return !type.has_shape() || (type.shape().dim_size() > 0 && !IsFixed(type.shape().dim(0)));
}

absl::StatusOr<Tensor> FitConstant(const ValueInfoProto& input, const Tensor& given) {
  ASSIGN_OR_RETURN(const DType dtype, CheckType(input));
  Tensor fitted = Cast(given, dtype);
  for (int64_t i = 0; i < given.num_elements(); ++i) {
    if (IsFloat(dtype) || fitted.At(i) == given.At(i)) continue;
    return UsageError(absl::StrCat("found the value ", given.At(i), ", wanted one of type ", DTypeName(dtype)));
  }
  const TensorShapeProto& stated = input.type().tensor_type().shape();
  if (!input.type().tensor_type().has_shape() || Agrees(stated, given.shape())) return fitted;
  const Shape shape = KnownDimensions(stated, {}, {});
  if (const auto wanted = CheckedNumElements(shape); !wanted.ok() || *wanted != given.num_elements()) {
    return UsageError(absl::StrCat("found ", given.num_elements(), " values, wanted as many as ", ShapeName(stated),
                                   " has in the file"));
  }
  fitted.set_type({dtype, shape, std::nullopt, Layout::kRowMajor});
  return fitted;
}

absl::StatusOr<std::pair<std::string, Tensor>> ParseConstant(absl::string_view text) {
  const size_t colon = text.rfind(':');
  std::vector<double> values;
  bool valid = colon != absl::string_view::npos && colon > 0;
  for (absl::string_view part : absl::StrSplit(text.substr(valid ? colon + 1 : 0), ',')) {
    valid = valid && absl::SimpleAtod(part, &values.emplace_back());
  }
  if (!valid) return UsageError(absl::StrCat("found the value ", Quote(text), ", wanted name:numbers, as rate:16000"));
  return std::make_pair(std::string(text.substr(0, colon)), Tensor::Of({static_cast<int64_t>(values.size())}, values));
}

}  // namespace fuselage::onnx
