#include "tools/peers/bundle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/writer/writer.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/environment.h"
#include "harness/phases/phases.h"
#include "harness/phases/run_state.h"
#include "harness/phases/save_onnx.h"
#include "ir/base/status.h"
#include "ir/safetensors.h"
#include "kernels/register_all.h"
#include "passes/fusion/fusion.pb.h"
#include "passes/quantize/quantize.pb.h"
#include "tools/peers/worker.h"

namespace fuselage::peers {
namespace {

namespace phases = harness::phases;
using harness::RunState;

constexpr char kLowered[] = "lowered", kQuantized[] = "quantized";

// Biases as integers: onnxruntime runs a layer in integers where its bias is one.
absl::Status WriteOnnx(const ir::Graph& graph, const std::string& name, harness::Recorder& recorder) {
  onnx::writer::WriteOptions options;
  options.bias = onnx::writer::WriteOptions::Bias::kInt32;
  ASSIGN_OR_RETURN(const std::string path, recorder.Claim(name));
  return phases::WriteOnnx(graph, std::move(options), path);
}

absl::Status WriteIr(const ir::Graph& graph, const std::string& stem, harness::Recorder& recorder) {
  for (const char* extension : {".ir", ".safetensors"}) {
    RETURN_IF_ERROR(recorder.Claim(absl::StrCat(stem, extension)).status());
  }
  return ir::WriteGraph(absl::StrCat(recorder.folder(), "/", stem), graph);
}

// The value of the lowered graph that holds the codes of a quantize: the quantize itself, or the kernel that it went
// into. Null where there is none of its type.
const ir::Node* CodesOrNull(const ir::Graph& lowered, const ir::Node& quantize) {
  for (const std::string& name : {quantize.name(), quantize.operand(0)->name()}) {
    const ir::Node* found = lowered.FindNodeOrNull(name);
    if (found != nullptr && found->type() == quantize.type()) return found;
  }
  return nullptr;
}

// int8_codes.onnx, and what our kernels compute for its outputs.
absl::Status WriteCodes(const ir::Graph& quantized, const ir::Graph& lowered, const std::vector<Tensor>& inputs,
                        harness::Recorder& recorder, ir::TensorMap* samples) {
  const std::unique_ptr<ir::Graph> onnx = quantized.Clone(), ours = lowered.Clone();
  std::vector<std::string> names;
  for (const ir::Node* output : quantized.output()->operands()) names.push_back(output->name());
  for (ir::Node* node : onnx->Snapshot()) {
    if (!node->IsOp("quantize")) continue;
    const ir::Node* codes = CodesOrNull(*ours, *node);
    if (codes == nullptr || std::find(names.begin(), names.end(), node->name()) != names.end()) continue;
    onnx->AppendOutput(node);
    ours->AppendOutput(ours->FindNodeOrNull(codes->name()));
    names.push_back(node->name());
  }
  RETURN_IF_ERROR(WriteOnnx(*onnx, "int8_codes.onnx", recorder));
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);
  runtime::ThreadPool pool(harness::AvailableCores());
  ASSIGN_OR_RETURN(const auto engine, compiler::MakeEngine(*ours, inputs[0].dim(0), kernels, &pool, {}));
  ASSIGN_OR_RETURN(const std::vector<Tensor>* outputs, engine->Run(inputs));
  for (size_t i = 0; i < names.size(); ++i) (*samples)[names[i]] = std::make_shared<Tensor>((*outputs)[i]);
  return absl::OkStatus();
}

// Runs the request's passes with other options of one of them, set by `change`, into a folder of its own.
template <typename Options, typename Change>
absl::StatusOr<std::unique_ptr<ir::Graph>> WithOptions(harness::RunRequest request, const std::string& name,
                                                       const harness::Recorder& bundle, report::Progress& progress,
                                                       Change change) {
  for (auto& step : *request.config.mutable_pipeline()->mutable_steps()) {
    Options options;
    if (!step.pass().UnpackTo(&options)) continue;
    change(options);
    step.mutable_pass()->PackFrom(options);
  }
  const std::string folder = absl::StrCat(bundle.folder(), "/", name);
  RETURN_IF_ERROR(harness::MakeWritableFolder(folder));
  harness::Recorder recorder(folder);
  RunState run(request, progress, recorder);
  RETURN_IF_ERROR(phases::Run(phases::kCompile, run));
  return run.variants.back().graph->Clone();
}

// The same network with residuals left beside the convolutions; the request's last variant is the quantized one.
absl::Status WriteSums(const harness::RunRequest& request, harness::Recorder& bundle, report::Progress& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> graph,
                   WithOptions<FusionOptions>(request, "sums", bundle, progress, [](FusionOptions& options) {
                     options.add_disable(FusionOptions::CONV_ADD);
                   }));
  return WriteOnnx(*graph, "int8_sums.onnx", bundle);
}

// The end of the pipeline where each op is in the precision, and has the bits of weights, that are faster here.
absl::Status WriteFastest(const harness::RunRequest& request, harness::Recorder& bundle, report::Progress& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> graph,
                   WithOptions<QuantizeOptions>(request, "fastest", bundle, progress, [](QuantizeOptions& options) {
                     options.set_precision(QuantizeOptions::FASTEST);
                     if (options.weights() != QuantizeOptions::PER_CHANNEL) return;
                     options.set_weights(QuantizeOptions::PER_CHANNEL_7_OR_8_BITS);
                   }));
  return WriteIr(*graph, "fastest", bundle);
}

absl::Status Write(const harness::RunRequest& request, int samples, report::Progress& progress,
                   harness::Recorder& recorder) {
  RunState run(request, progress, recorder);
  RETURN_IF_ERROR(phases::Run(phases::kCompile, run));
  progress.Begin("write the models");
  const ir::Graph& fp32 = *run.variants[0].graph;
  const ir::Graph& int8 = *run.variants[1].graph;
  const ir::Graph& lowered = *run.variants[2].graph;
  const ir::Graph& quantized = *run.variants[3].graph;
  RETURN_IF_ERROR(WriteIr(fp32, "fp32", recorder));
  RETURN_IF_ERROR(WriteIr(int8, "int8", recorder));
  RETURN_IF_ERROR(WriteIr(lowered, "int8_lowered", recorder));
  RETURN_IF_ERROR(WriteOnnx(fp32, "fp32.onnx", recorder));
  RETURN_IF_ERROR(WriteOnnx(quantized, "int8.onnx", recorder));
  std::vector<TensorType> types;
  for (const ir::Node* placeholder : lowered.placeholders()) {
    types.push_back(placeholder->tensor_type());
    types.back().shape[0] = samples;
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, run.inputs->Batch(0, types));
  ir::TensorMap tensors;
  for (size_t i = 0; i < inputs.size(); ++i) tensors[InputName(i)] = std::make_shared<Tensor>(inputs[i]);
  RETURN_IF_ERROR(WriteCodes(quantized, lowered, inputs, recorder, &tensors));
  ASSIGN_OR_RETURN(const std::string path, recorder.Claim("samples.safetensors"));
  return ir::WriteSafetensors(path, tensors);
}

}  // namespace

absl::Status WriteBundle(const harness::RunRequest& request, int samples, report::Progress& progress,
                         harness::Recorder& recorder) {
  harness::RunRequest prepared = request;
  HarnessConfig& config = prepared.config;
  if (config.variants_size() < 2) {
    return UsageError(absl::StrCat(request.name, ": ", config.variants_size(),
                                   " variants, want the float network first and the INT8 one last"));
  }
  if (config.variants_size() > 2) config.mutable_variants()->DeleteSubrange(1, config.variants_size() - 2);
  for (const auto& [name, after] : {std::pair(kLowered, "lower"), std::pair(kQuantized, "quant_lift")}) {
    auto* variant = config.add_variants();
    variant->set_name(name);
    variant->set_after(after);
    variant->set_isa(config.variants(1).isa());
  }
  config.clear_numeric_check();
  recorder.Update([&](Results& results) {
    results.set_config(request.name);
    results.set_title(config.title());
    results.set_config_text(config.DebugString());
    *results.mutable_environment() = harness::DescribeEnvironment(request.search);
  });
  RETURN_IF_ERROR(Write(prepared, samples, progress, recorder));
  config.mutable_variants()->DeleteSubrange(2, 2);  // All but float and INT8.
  RETURN_IF_ERROR(WriteFastest(prepared, recorder, progress));
  auto* quantized = config.mutable_variants(1);
  quantized->set_name(kQuantized);
  quantized->set_after("quant_lift");
  return WriteSums(prepared, recorder, progress);
}

}  // namespace fuselage::peers
