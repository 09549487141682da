#include "harness/measure/output_error.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/types/span.h"
#include "ir/base/check.h"

namespace fuselage::harness {
namespace {

std::vector<double> LogSoftmax(absl::Span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  std::vector<double> log_p;
  for (const float logit : logits) log_p.push_back(logit - most - std::log(sum));
  return log_p;
}

int64_t Largest(absl::Span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

}  // namespace

LogitsError CompareLogits(const Tensor& wanted, const Tensor& found) {
  FUSELAGE_CHECK(wanted.rank() > 0 && wanted.shape() == found.shape() && wanted.num_elements() > 0);
  const int64_t classes = wanted.dim(wanted.rank() - 1), rows = wanted.num_elements() / classes;
  double divergence = 0;
  int64_t agreed = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto p = wanted.values<float>().subspan(row * classes, classes);
    const auto q = found.values<float>().subspan(row * classes, classes);
    const std::vector<double> log_p = LogSoftmax(p), log_q = LogSoftmax(q);
    for (int64_t i = 0; i < classes; ++i) {
      const double probability = std::exp(log_p[i]);
      if (probability != 0) divergence += probability * (log_p[i] - log_q[i]);  // 0 * log(0) is 0 here.
    }
    agreed += Largest(p) == Largest(q);
  }
  const double count = static_cast<double>(rows);
  return {divergence / M_LN2 / count, 100 * static_cast<double>(agreed) / count};
}

}  // namespace fuselage::harness
