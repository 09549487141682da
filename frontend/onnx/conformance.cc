#include "frontend/onnx/conformance.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/onnx.h"
#include "ir/base/comparison.h"
#include "ir/ops/register_all.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx::conformance {
namespace {

namespace fs = std::filesystem;

// Operands that must be constants, by operator, and so what they follow from.
bool IsConstantInput(const std::string& op, int i) {
  if (absl::StartsWith(op, "Reduce")) return i == 1;
  static const auto* inputs = new std::map<std::string, std::set<int>>{
      {"AffineGrid", {1}},
      {"BlackmanWindow", {0}},
      {"CenterCropPad", {1}},
      {"Clip", {1, 2}},
      {"Col2Im", {1, 2}},
      {"ConstantOfShape", {0}},
      {"CumSum", {1}},
      {"DFT", {1, 2}},
      {"Dropout", {1, 2}},
      {"Expand", {1}},
      {"HammingWindow", {0}},
      {"HannWindow", {0}},
      {"If", {0}},
      {"Loop", {0, 1}},
      {"MaxUnpool", {2}},
      {"MelWeightMatrix", {0, 1, 2, 3, 4}},
      {"NonMaxSuppression", {2, 3, 4}},
      {"OneHot", {1}},
      {"Pad", {1, 2, 3}},
      {"Range", {0, 1, 2}},
      {"Reshape", {1}},
      {"Resize", {1, 2, 3}},
      {"STFT", {1, 3}},
      {"Slice", {1, 2, 3, 4}},
      {"Split", {1}},
      {"Squeeze", {1}},
      {"Tile", {1}},
      {"TopK", {1}},
      {"Trilu", {1}},
      {"Unsqueeze", {1}},
      {"Upsample", {1}},
  };
  const auto it = inputs->find(op);
  return it != inputs->end() && it->second.count(i) > 0;
}

bool IsWeight(const std::string& op, int i) {
  if (op == "GRU" || op == "LSTM" || op == "RNN") return (i >= 1 && i <= 3) || i == 7;
  static const auto* ops = new std::set<std::string>{"BatchNormalization",
                                                     "Conv",
                                                     "ConvInteger",
                                                     "ConvTranspose",
                                                     "Gemm",
                                                     "GroupNormalization",
                                                     "InstanceNormalization",
                                                     "LayerNormalization"};
  return i > 0 && ops->count(op) > 0;
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> DataSets(const fs::path& model) {
  std::vector<fs::path> sets;
  for (int i = 0; fs::exists(model.parent_path() / absl::StrCat("test_data_set_", i)); ++i) {
    sets.push_back(model.parent_path() / absl::StrCat("test_data_set_", i));
  }
  return sets;
}

absl::StatusOr<std::vector<Tensor>> ReadTensors(const fs::path& folder, const std::string& kind) {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / absl::StrCat(kind, "_", i, ".pb");
    if (!fs::exists(path)) return tensors;
    ASSIGN_OR_RETURN(Tensor tensor, ParseTensor(ReadAll(path), path.string()));
    tensors.push_back(std::move(tensor));
  }
}

// What a test feeds: the tensors of the placeholders, and those that became constants.
struct Feed {
  LoadOptions options;
  std::vector<Tensor> inputs;
};

absl::StatusOr<Feed> ReadFeed(const fs::path& model_path, const fs::path& data_set, Weights weights) {
  schema::ModelProto model;
  if (!model.ParseFromString(ReadAll(model_path))) return absl::InternalError("the test's own parser failed");
  std::set<std::string> constant;
  const auto& nodes = model.graph().node();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool follows = node->op_type() != "Shape" && node->op_type() != "Size" &&
                         std::any_of(node->output().begin(), node->output().end(),
                                     [&](const std::string& output) { return constant.count(output) > 0; });
    for (int i = 0; i < node->input_size(); ++i) {
      const std::string& op = node->op_type();
      if (follows || IsConstantInput(op, i) || (weights == Weights::kConstants && IsWeight(op, i))) {
        constant.insert(node->input(i));
      }
    }
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> inputs, ReadTensors(data_set, "input"));
  std::set<std::string> initializers;
  for (const auto& initializer : model.graph().initializer()) initializers.insert(initializer.name());
  Feed feed;
  size_t next = 0;
  for (const auto& input : model.graph().input()) {
    if (initializers.count(input.name()) > 0) continue;
    if (next == inputs.size()) return absl::InternalError("fewer inputs in the data than in the model");
    Tensor tensor = std::move(inputs[next++]);
    if (constant.count(input.name()) > 0) {
      feed.options.constants.emplace(input.name(), std::move(tensor));
    } else {
      feed.options.shapes[input.name()] = tensor.shape();
      feed.inputs.push_back(std::move(tensor));
    }
  }
  return feed;
}

// ONNX's own runner: numpy's assert_allclose(rtol=1e-3, atol=1e-7) for floats; all else exactly.
std::string Difference(const Tensor& found, const Tensor& wanted) {
  if (found.dtype() != wanted.dtype() || found.shape() != wanted.shape()) {
    return absl::StrCat("found ", ToString(found.type()), ", wanted ", ToString(wanted.type()));
  }
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double a = found.At(i), b = wanted.At(i);
    const bool equal = IsFloat(wanted.dtype()) ? IsClose(a, b, 1e-3, 1e-7) : a == b;
    if (!equal) return absl::StrCat("element ", i, ": found ", a, ", wanted ", b);
  }
  return "";
}

// Of a result with room for more elements along one axis the first `count`.
Tensor FirstOf(const Tensor& room, const Shape& wanted, int64_t count) {
  const auto [axis, other] = std::mismatch(wanted.begin(), wanted.end(), room.shape().begin(), room.shape().end());
  if (axis == wanted.end() || other == room.shape().end() || *other < count) return room;
  TensorType type = room.type();
  type.shape[axis - wanted.begin()] = count;
  Tensor first(type);
  int64_t inner = ByteSize(type.dtype);
  for (auto size = axis + 1; size != wanted.end(); ++size) inner *= *size;
  const int64_t rows = count * inner, pitch = *other * inner;
  for (int64_t i = 0; rows > 0 && i < first.byte_size() / rows; ++i) {
    std::memcpy(static_cast<char*>(first.raw_data()) + i * rows, static_cast<const char*>(room.raw_data()) + i * pitch,
                rows);
  }
  return first;
}

Result Fail(std::string message) { return {Outcome::kFailed, std::move(message)}; }

// The message must say what is not supported: an operator, a node, an input or a tensor.
Result Declined(const absl::Status& status) {
  const bool named = absl::StrContains(status.message(), "unsupported operator") ||
                     absl::StrContains(status.message(), "node '") || absl::StrContains(status.message(), "input '") ||
                     absl::StrContains(status.message(), "tensor '");
  if (status.code() != absl::StatusCode::kUnimplemented || !named) return Fail(status.ToString());
  return {Outcome::kDeclined, std::string(status.message())};
}

Result RunDataSet(const fs::path& model, const fs::path& data_set, Weights weights, const Runner& run) {
  absl::StatusOr<Feed> feed = ReadFeed(model, data_set, weights);
  // Sequences and strings have no tensor; then the model is declined as well.
  LoadOptions options = feed.ok() ? feed->options : LoadOptions();
  Names names;
  options.names = &names;
  absl::StatusOr<std::unique_ptr<ir::Graph>> graph = Load(model.string(), Ops(), options);
  if (!graph.ok()) return Declined(graph.status());
  if (!feed.ok()) return Fail(absl::StrCat("loaded, but its data: ", feed.status().ToString()));
  absl::StatusOr<std::vector<Tensor>> wanted = ReadTensors(data_set, "output");
  if (!wanted.ok()) return Fail(absl::StrCat("loaded, but its data: ", wanted.status().ToString()));
  absl::StatusOr<std::vector<Tensor>> found = run(**graph, feed->inputs);
  if (absl::IsUnimplemented(found.status())) return {Outcome::kDeclined, std::string(found.status().message())};
  if (!found.ok()) return Fail(found.status().ToString());
  for (size_t i = 1; i < found->size() && i <= wanted->size(); ++i) {
    if (!absl::EndsWith(names.outputs[i], ".count")) continue;
    (*found)[i - 1] = FirstOf((*found)[i - 1], (*wanted)[i - 1].shape(), (*found)[i].data<int64_t>()[0]);
    found->erase(found->begin() + static_cast<int64_t>(i));
    names.outputs.erase(names.outputs.begin() + static_cast<int64_t>(i));
    --i;
  }
  if (found->size() != wanted->size()) return Fail(absl::StrCat(found->size(), " outputs, wanted ", wanted->size()));
  for (size_t i = 0; i < wanted->size(); ++i) {
    const std::string difference = Difference((*found)[i], (*wanted)[i]);
    if (!difference.empty()) return Fail(absl::StrCat("output ", i, ": ", difference));
  }
  return {Outcome::kPassed, ""};
}

}  // namespace

const std::vector<Tier>& FirstTier() {
  static const auto* tier = new std::vector<Tier>{
      {"Conv",
       {"basic_conv_with_padding", "basic_conv_without_padding", "conv_with_autopad_same",
        "conv_with_strides_and_asymmetric_padding", "conv_with_strides_no_padding", "conv_with_strides_padding"}},
      {"BatchNormalization",
       {"batchnorm_epsilon", "batchnorm_epsilon_training_mode", "batchnorm_example",
        "batchnorm_example_training_mode"}},
      {"Relu", {"relu"}},
      {"Add", {"add", "add_bcast", "add_uint8"}},
      {"MaxPool",
       {"maxpool_1d_default", "maxpool_2d_ceil", "maxpool_2d_default", "maxpool_2d_dilations", "maxpool_2d_pads",
        "maxpool_2d_precomputed_pads", "maxpool_2d_precomputed_same_upper", "maxpool_2d_precomputed_strides",
        "maxpool_2d_same_lower", "maxpool_2d_same_upper", "maxpool_2d_strides", "maxpool_2d_uint8",
        "maxpool_3d_default", "maxpool_with_argmax_2d_precomputed_pads", "maxpool_with_argmax_2d_precomputed_strides"}},
      {"AveragePool",
       {"averagepool_1d_default", "averagepool_2d_ceil", "averagepool_2d_default", "averagepool_2d_pads",
        "averagepool_2d_pads_count_include_pad", "averagepool_2d_precomputed_pads",
        "averagepool_2d_precomputed_pads_count_include_pad", "averagepool_2d_precomputed_same_upper",
        "averagepool_2d_precomputed_strides", "averagepool_2d_same_lower", "averagepool_2d_same_upper",
        "averagepool_2d_strides", "averagepool_3d_default"}},
      {"GlobalAveragePool", {"globalaveragepool", "globalaveragepool_precomputed"}},
      {"Gemm",
       {"gemm_all_attributes", "gemm_alpha", "gemm_beta", "gemm_default_matrix_bias", "gemm_default_no_bias",
        "gemm_default_scalar_bias", "gemm_default_single_elem_vector_bias", "gemm_default_vector_bias",
        "gemm_default_zero_bias", "gemm_transposeA", "gemm_transposeB"}},
      {"Flatten",
       {"flatten_axis0", "flatten_axis1", "flatten_axis2", "flatten_axis3", "flatten_default_axis",
        "flatten_negative_axis1", "flatten_negative_axis2", "flatten_negative_axis3", "flatten_negative_axis4"}},
      {"Reshape",
       {"reshape_allowzero_reordered", "reshape_extended_dims", "reshape_negative_dim",
        "reshape_negative_extended_dims", "reshape_one_dim", "reshape_reduced_dims", "reshape_reordered_all_dims",
        "reshape_reordered_last_dims", "reshape_zero_and_negative_dim", "reshape_zero_dim"}},
      {"QuantizeLinear", {"quantizelinear", "quantizelinear_axis"}},
      {"DequantizeLinear", {"dequantizelinear", "dequantizelinear_axis"}},
      {"QLinearConv", {"qlinearconv"}},
      {"QLinearMatMul", {"qlinearmatmul_2D", "qlinearmatmul_3D"}},
      {"ConvInteger", {"basic_convinteger", "convinteger_with_padding", "convinteger_without_padding"}},
      {"MatMulInteger", {"matmulinteger"}},
      {"DynamicQuantizeLinear",
       {"dynamicquantizelinear", "dynamicquantizelinear_max_adjusted", "dynamicquantizelinear_min_adjusted"}},
  };
  return *tier;
}

const std::map<std::string, const char*>& Exclusions() {
  static const auto* exclusions = new std::map<std::string, const char*>{
      {"batchnorm_epsilon_training_mode", "batch statistics: training mode"},
      {"batchnorm_example_training_mode", "batch statistics: training mode"},
  };
  return *exclusions;
}

std::filesystem::path NodeTest(const std::string& test) {
  return fs::path(kData) / "node" / ("test_" + test) / "model.onnx";
}

const ir::OpRegistry& Ops() {
  static const auto* registry = [] {
    auto* created = new ir::OpRegistry;
    ops::RegisterAll(*created);
    return created;
  }();
  return *registry;
}

std::vector<fs::path> AllModels() { return ModelsBelow(kData); }

std::vector<fs::path> ModelsBelow(const fs::path& folder) {
  std::vector<fs::path> models;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") models.push_back(entry.path());
  }
  std::sort(models.begin(), models.end());
  return models;
}

Result RunModel(const fs::path& model, Weights weights, const Runner& run) {
  const std::vector<fs::path> data_sets = DataSets(model);
  if (data_sets.empty()) return Fail("no test data");
  for (const fs::path& data_set : data_sets) {
    const Result result = RunDataSet(model, data_set, weights, run);
    if (result.outcome != Outcome::kPassed) return result;
  }
  return {Outcome::kPassed, ""};
}

}  // namespace fuselage::onnx::conformance
