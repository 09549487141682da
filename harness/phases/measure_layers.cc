#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/measure/layer_errors.h"
#include "harness/measure/layers.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"
#include "passes/core/roofline.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness::phases {
namespace {

constexpr int kProfileRuns = 20;
constexpr int kSnrImages = 4;

}  // namespace

absl::Status MeasureLayers(RunState& run) {
  const int64_t batch = run.FirstMeasuredBatch();
  if (batch == 0) return absl::OkStatus();
  run.progress.Begin("layers");
  runtime::ThreadPool pool(run.threads[0]);
  for (size_t i = 0; i < run.variants.size(); ++i) {
    const Variant& variant = run.variants[i];
    if (!variant.runs() || variant.engine.backend == "reference") continue;
    run.progress.Detail(variant.name());
    ASSIGN_OR_RETURN(const auto engine, run.MakeEngine(variant, batch, &pool));
    ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, run.inputs->Batch(0, engine->input_types()));
    ASSIGN_OR_RETURN(std::vector<Results::Layer> layers, ProfileLayers(*engine->executable(), inputs, kProfileRuns));

    LayerErrors errors;
    if (i > 0 && run.BaselineRuns()) {
      std::vector<TensorType> types = engine->input_types();
      // A network may hold a constant of its own batch, and run at no other.
      const int64_t images = variant.GraphAt(kSnrImages).ok() ? kSnrImages : batch;
      for (TensorType& type : types) type.shape[0] = images;
      ASSIGN_OR_RETURN(const std::vector<Tensor> samples, run.inputs->Batch(0, types));
      const ir::Graph& wanted = variant.float_graph != nullptr ? *variant.float_graph : *run.variants[0].graph;
      auto found = MeasureLayerErrors({wanted, run.variants[0].engine}, {*variant.graph, variant.engine}, samples,
                                      run.library.kernels, run.pool.get());
      if (!found.ok()) {
        run.Warn(absl::StrCat("no SNR of the layers of ", variant.name(), ": ", found.status().message()));
      } else {
        errors = *std::move(found);
      }
      if (!errors.local.ok()) {
        run.Warn(absl::StrCat("no local errors of the layers of ", variant.name(), ": ", errors.local.message()));
      }
    }
    ASSIGN_OR_RETURN(const auto graph, variant.GraphAt(batch));
    run.recorder.Update([&](Results& results) {
      for (Results::Layer& layer : layers) {
        const auto error = errors.layers.find(layer.name());
        if (error != errors.layers.end()) {
          layer.set_snr_db(error->second.snr_db);
          *layer.mutable_quantization() = std::move(error->second.quantization);
        }
        if (const ir::Node* node = graph->FindNodeOrNull(layer.name())) {
          const passes::Work work = passes::WorkOf(*node);
          layer.set_operations(work.operations);
          layer.set_operations_per_byte(passes::ArithmeticIntensity(work));
        }
        *results.mutable_variants(static_cast<int>(i))->add_layers() = std::move(layer);
      }
    });
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases
