#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/core/float_operands.h"

namespace fuselage::norm {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

// Rows of `columns` elements have statistics of their own. Element i of all has the parameters at i / inner, modulo
// their number.
struct Rows {
  int64_t columns, inner;
  bool centered;  // Otherwise the mean stays, and the variance is the mean square.
};

struct Parameters {
  std::vector<float> weight, bias;  // As many of both.
};

class Norm final : public kernels::UnaryKernel {
 public:
  Norm(const KernelDesc& desc, const Rows& rows, Parameters parameters)
      : UnaryKernel(desc),
        rows_(rows),
        count_(desc.input(0).num_elements() / rows.columns),
        eps_(desc.GetFloat("eps")),
        parameters_(std::move(parameters)) {
    set_variant("double");
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const int64_t grain = std::max<int64_t>(1, kGrain / rows_.columns);
    kernels::ForRanges(*context.parallel, count_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        ComputeRow(row, static_cast<const float*>(x) + row * rows_.columns,
                   static_cast<float*>(y) + row * rows_.columns);
      }
    });
  }

  void ComputeRow(int64_t row, const float* x, float* y) const {
    const int64_t n = rows_.columns;
    double sum = 0, squares = 0;
    for (int64_t i = 0; rows_.centered && i < n; ++i) sum += x[i];
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + eps_);
    const int64_t parameters = static_cast<int64_t>(parameters_.weight.size());
    int64_t at = row * n / rows_.inner % parameters;
    for (int64_t i = 0; i < n;) {
      // A run of elements with one parameter each, or of `inner` that share one.
      const bool own = rows_.inner == 1;
      const int64_t run = std::min(n - i, own ? parameters - at : rows_.inner);
      const float *weight = parameters_.weight.data() + at, *bias = parameters_.bias.data() + at;
      for (int64_t k = 0; k < run; ++k) {
        const int64_t p = own ? k : 0;
        y[i + k] = static_cast<float>((x[i + k] - mean) * factor * weight[p] + bias[p]);
      }
      i += run;
      at = (at + (own ? run : 1)) % parameters;
    }
  }

  const Rows rows_;
  const int64_t count_;
  const double eps_;
  const Parameters parameters_;
};

absl::StatusOr<std::vector<float>> FloatsOr(const KernelDesc& desc, absl::string_view name, int64_t size, float fill) {
  if (desc.ParameterOrNull(name) == nullptr) return std::vector<float>(size, fill);
  ASSIGN_OR_RETURN(const Tensor tensor, kernels::FloatParameter(desc, name));
  return std::vector<float>(tensor.values<float>().begin(), tensor.values<float>().end());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  RETURN_IF_ERROR(kernels::CheckFloats(desc));
  const Shape& shape = desc.input(0).shape;
  Rows rows{1, 1, desc.op != "rms_norm"};
  int64_t parameters;
  if (desc.attributes.count("normalized_shape") > 0) {
    for (const int64_t size : desc.GetInts("normalized_shape")) rows.columns *= size;
    parameters = rows.columns;
  } else {
    for (size_t axis = 2; axis < shape.size(); ++axis) rows.inner *= shape[axis];
    parameters = shape[1];
    const bool grouped = desc.attributes.count("num_groups") > 0;
    rows.columns = (grouped ? shape[1] / desc.GetInt("num_groups") : 1) * rows.inner;
  }
  ASSIGN_OR_RETURN(std::vector<float> weight, FloatsOr(desc, "weight", parameters, 1.0f));
  ASSIGN_OR_RETURN(std::vector<float> bias, FloatsOr(desc, "bias", parameters, 0.0f));
  return std::make_unique<Norm>(desc, rows, Parameters{std::move(weight), std::move(bias)});
}

void Register(kernels::KernelRegistry& registry) {
  for (const char* op : {"group_norm", "instance_norm", "rms_norm"}) {
    registry.Register({op, kernels::LayoutRule::kRowMajor, Create});
  }
}

}  // namespace fuselage::norm
