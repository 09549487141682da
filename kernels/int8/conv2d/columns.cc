#include "kernels/int8/conv2d/columns.h"

#include <algorithm>
#include <vector>

#include "kernels/core/parallel.h"
#include "kernels/int8/conv2d/core/operands.h"

namespace fuselage::int8::conv2d {
namespace {

constexpr int64_t kGrain = int64_t{1} << 18;  // Products that are worth a thread's while.
constexpr int kTogether = 16;                 // Columns, which fill the drivers' tiles.

// Where the input of output column `x` begins, padding and all.
int64_t InputOf(const Geometry& g, int64_t x) { return x * g.stride_x - g.pad_left; }

class Columns final : public Algorithm {
 public:
  Columns(const Problem& problem, std::unique_ptr<Algorithm> (*make)(const Problem& problem)) : operands_(problem) {
    const Geometry& g = problem.geometry;
    const int64_t groups = (g.out_width + kTogether - 1) / kTogether;
    int64_t scratch = 0;
    for (int part = 0; part < problem.threads; ++part) {
      const int64_t begin = groups * part / problem.threads * kTogether;
      const int64_t end = std::min<int64_t>(g.out_width, groups * (part + 1) / problem.threads * kTogether);
      const int64_t first = std::max<int64_t>(0, InputOf(g, begin));
      const int64_t last =
          std::min<int64_t>(g.in_width, InputOf(g, end - 1) + int64_t{g.kernel_width - 1} * g.dilation_x + 1);
      if (begin >= end) continue;  // More threads than columns.
      Problem own = problem;
      own.threads = 1;
      own.geometry.out_width = static_cast<int>(end - begin);
      own.geometry.in_width = static_cast<int>(last - first);
      own.geometry.pad_left = static_cast<int>(first - InputOf(g, begin));
      parts_.push_back({make(own), begin, first, scratch});
      scratch += (parts_.back().algorithm->scratch_bytes() + 63) / 64 * 64;
    }
    scratch_bytes_ = scratch;
    weight_ = parts_.front().algorithm->weight();
  }

  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t constant_bytes() const override {
    return static_cast<int64_t>(parts_.size()) * parts_.front().algorithm->constant_bytes();
  }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    context.parallel->For(static_cast<int>(parts_.size()), [&](int task, int) {
      const Part& part = parts_[task];
      const Destination to = operands_.To(arguments, 0, 0, part.output, 0);
      const Arguments own = {static_cast<const uint8_t*>(arguments.input) + operands_.input.Offset(0, 0, part.input),
                             to.residual, to.output};
      kernels::Serial serial;
      kernels::RunContext alone = context;
      alone.parallel = &serial;
      alone.scratch.data = static_cast<uint8_t*>(context.scratch.data) + part.scratch;
      part.algorithm->Run(own, alone);
    });
  }

 private:
  struct Part {
    std::unique_ptr<Algorithm> algorithm;
    int64_t output, input;  // The first columns.
    int64_t scratch;        // Where its memory begins.
  };

  const Operands operands_;
  std::vector<Part> parts_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace

bool SharesColumns(const Problem& problem) {
  const Geometry& g = problem.geometry;
  const bool one_row = g.batch == 1 && g.in_height == 1 && g.out_height == 1 && g.kernel_height == 1;
  const bool dense =
      problem.input_placement.dense() && problem.residual_placement.dense() && problem.output_placement.dense();
  if (problem.threads == 1 || !one_row || !dense || g.macs() < problem.threads * kGrain) return false;
  // Every output has a tap at or between the input's ends: no part lies in the padding alone.
  if (g.pad_left > (g.kernel_width - 1) * g.dilation_x || InputOf(g, g.out_width - 1) >= g.in_width) return false;
  const int64_t weights = int64_t{g.out_channels} * g.group_in_channels() * g.kernel_width;
  return weights <= int64_t{g.in_width} * g.in_channels || g.out_channels < problem.threads * 4 * kernels::kPanel;
}

std::unique_ptr<Algorithm> MakeColumns(const Problem& problem,
                                       std::unique_ptr<Algorithm> (*make)(const Problem& problem)) {
  return std::make_unique<Columns>(problem, make);
}

}  // namespace fuselage::int8::conv2d
