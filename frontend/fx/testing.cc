#include "frontend/fx/testing.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "frontend/fx/fx.h"
#include "ir/base/comparison.h"
#include "ir/safetensors.h"

namespace fuselage::fx {
namespace {

constexpr double kTolerance = 1e-5;

// "<prefix>0", "<prefix>1", ... as long as there are such.
std::vector<Tensor> Numbered(const ir::TensorMap& tensors, absl::string_view prefix) {
  std::vector<Tensor> found;
  for (auto it = tensors.find(absl::StrCat(prefix, 0)); it != tensors.end();
       it = tensors.find(absl::StrCat(prefix, found.size()))) {
    found.push_back(*it->second);
  }
  return found;
}

}  // namespace

const std::vector<std::string>& ExampleNames() {
  static const auto* names = new std::vector<std::string>{
      "mlp",
      "linear_relu",
      "patterns",
      "conv_bn",
      "cnn",
      "resnet_block_modules",
      "resnet_block_functional",
      "resnet_block_torch",
      "resnet_block_methods",
      "resnet_block_in_place",
      "mobile",
      "transformer",
      "activations",
      "shapes",
      "layers",
      "functions",
  };
  return *names;
}

std::string ExamplePath(absl::string_view name) { return absl::StrCat("frontend/fx/examples/", name, ".ir"); }

absl::StatusOr<Example> LoadExample(absl::string_view name, const ir::OpRegistry& ops) {
  const std::string path = ExamplePath(name);
  Example example;
  ASSIGN_OR_RETURN(example.graph, Load(path, ops));
  ASSIGN_OR_RETURN(const ir::TensorMap tensors,
                   ir::ReadSafetensors(absl::StrCat(absl::StripSuffix(path, ".ir"), ".expected.safetensors")));
  example.inputs = Numbered(tensors, "input.");
  example.outputs = Numbered(tensors, "output.");
  if (example.inputs.empty() || example.inputs.size() + example.outputs.size() != tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": wanted tensors input.0, ..., output.0, ..."));
  }
  return example;
}

absl::Status CompareOutputs(absl::Span<const Tensor> found, absl::Span<const Tensor> wanted) {
  if (found.size() != wanted.size()) {
    return absl::InternalError(absl::StrCat(found.size(), " outputs, wanted ", wanted.size()));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].type() != wanted[i].type()) {
      return absl::InternalError(
          absl::StrCat("output ", i, ": ", ToString(found[i].type()), ", wanted ", ToString(wanted[i].type())));
    }
    const Difference difference = Compare(wanted[i], found[i]);
    if (difference.max_abs_error <= kTolerance * difference.magnitude) continue;
    return absl::InternalError(absl::StrCat("output ", i, " of up to ", difference.magnitude, " is off by ",
                                            difference.max_abs_error, ", allowed is ", kTolerance, " relative"));
  }
  return absl::OkStatus();
}

}  // namespace fuselage::fx
