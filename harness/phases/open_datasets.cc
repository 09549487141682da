#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/datasets/open.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {

absl::Status OpenDatasets(RunState& run) {
  if (!run.config.has_dataset()) return absl::OkStatus();
  run.progress.Begin("open dataset");
  const auto calibration_split =
      run.config.calibration().split() == HarnessConfig::TEST ? HarnessConfig::TEST : HarnessConfig::TRAIN;
  const auto evaluation_split =
      run.config.evaluation().split() == HarnessConfig::TRAIN ? HarnessConfig::TRAIN : HarnessConfig::TEST;
  ASSIGN_OR_RETURN(run.evaluation, datasets::Open(run.config.dataset(), evaluation_split, run.request.search));
  const bool labelled = run.evaluation.data->MakeJudge() != nullptr;
  const int wanted = std::max(run.config.calibration().images(), run.config.numeric_check().samples());
  if (wanted > 0) {
    ASSIGN_OR_RETURN(run.calibration, datasets::Open(run.config.dataset(), calibration_split, run.request.search));
    const int64_t images = std::min<int64_t>(run.config.calibration().images(), run.calibration.data->size());
    const absl::string_view unit = run.evaluation.data->unit();
    if (images == 1) run.Warn(absl::StrCat("calibration on a single ", unit));
    if (images > 0 && labelled && run.calibration.path == run.evaluation.path &&
        run.calibration.split == run.evaluation.split) {
      run.Warn(
          absl::StrCat("calibration and evaluation use the same ", unit, "s: the accuracy is not an independent one"));
    }
    run.recorder.Update([&](Results& results) {
      results.mutable_calibration()->set_split(run.calibration.split);
      results.mutable_calibration()->set_images(static_cast<int32_t>(images));
    });
  }
  run.recorder.Update([&](Results& results) {
    auto* dataset = results.mutable_dataset();
    dataset->set_name(run.evaluation.name);
    dataset->set_path(run.evaluation.path);
    dataset->set_split(run.evaluation.split);
    dataset->set_images(run.evaluation.data->size());
    dataset->set_unlabelled(!labelled);
    dataset->set_unit(run.evaluation.data->unit());
  });
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases
