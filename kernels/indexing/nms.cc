#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/base/boxes.h"
#include "kernels/indexing/indexing.h"

namespace fuselage::indexing {
namespace {

using kernels::KernelDesc;

constexpr int64_t kRow = 3;  // Image, class, box.

class Nms : public kernels::Kernel {
 public:
  explicit Nms(const KernelDesc& desc)
      : Kernel(desc),
        n_(desc.input(1).shape[2]),
        classes_(desc.input(1).shape[1]),
        lines_(desc.input(1).shape[0] * classes_),
        most_(std::min(n_, desc.GetInt("max_output_boxes_per_class"))),
        iou_(static_cast<float>(desc.GetFloat("iou_threshold"))),
        least_(static_cast<float>(desc.GetFloat("score_threshold"))),
        center_(desc.GetBool("center_point_box")),
        tasks_(std::min<int64_t>(std::max(1, desc.threads), std::max<int64_t>(lines_, 1))) {
    set_variant("scalar");
    set_scratch_bytes(lines_ * static_cast<int64_t>(sizeof(int64_t)) + tasks_ * task_bytes());
  }

 private:
  struct Candidate {
    float score;
    int32_t box;
  };

  // Of a thread: candidates, and the boxes that were kept.
  int64_t task_bytes() const {
    return n_ * static_cast<int64_t>(sizeof(Candidate)) + most_ * static_cast<int64_t>(sizeof(Box));
  }

  void Compute(absl::Span<const kernels::ConstBuffer> in, absl::Span<const kernels::Buffer> out,
               const kernels::RunContext& context) const override {
    auto* rows = static_cast<int64_t*>(out[0].data);
    auto* counts = static_cast<int64_t*>(context.scratch.data);  // Of each line.
    char* scratch = reinterpret_cast<char*>(counts + lines_);
    const int64_t tasks = std::min<int64_t>(context.parallel->threads(), tasks_);
    context.parallel->For(static_cast<int>(tasks), [&](int task, int) {
      auto* candidates = reinterpret_cast<Candidate*>(scratch + task * task_bytes());
      auto* kept = reinterpret_cast<Box*>(candidates + n_);
      for (int64_t line = lines_ * task / tasks; line < lines_ * (task + 1) / tasks; ++line) {
        const float* boxes = static_cast<const float*>(in[0].data) + line / classes_ * n_ * 4;
        const float* scores = static_cast<const float*>(in[1].data) + line * n_;
        counts[line] = Select(boxes, scores, line, candidates, kept, rows + line * most_ * kRow);
      }
    });
    int64_t found = 0;
    for (int64_t line = 0; line < lines_; ++line) {
      std::memmove(rows + found * kRow, rows + line * most_ * kRow, counts[line] * kRow * sizeof(*rows));
      found += counts[line];
    }
    std::fill(rows + found * kRow, rows + lines_ * most_ * kRow, 0);
    *static_cast<int64_t*>(out[1].data) = found;
  }

  // How many rows of one image and class it has written.
  int64_t Select(const float* boxes, const float* scores, int64_t line, Candidate* candidates, Box* kept,
                 int64_t* rows) const {
    Candidate* end = candidates;
    for (int64_t i = 0; i < n_; ++i) {
      if (scores[i] > least_) *end++ = {scores[i], static_cast<int32_t>(i)};
    }
    std::sort(candidates, end, [](const Candidate& a, const Candidate& b) {
      return a.score > b.score || (a.score == b.score && a.box < b.box);
    });
    int64_t count = 0;
    for (const Candidate* c = candidates; c < end && count < most_; ++c) {
      const Box box = BoxOf(boxes + int64_t{c->box} * 4, center_);
      if (std::any_of(kept, kept + count, [&](const Box& other) { return Overlap(other, box, iou_); })) continue;
      kept[count++] = box;
      *rows++ = line / classes_;
      *rows++ = line % classes_;
      *rows++ = c->box;
    }
    return count;
  }

  const int64_t n_, classes_, lines_, most_;
  const float iou_, least_;
  const bool center_;
  const int64_t tasks_;
};

}  // namespace

KernelOr CreateNms(const KernelDesc& desc) {
  if (desc.input(1).shape[2] > INT32_MAX) return absl::UnimplementedError("nms of 2^31 boxes and more");
  return std::make_unique<Nms>(desc);
}

}  // namespace fuselage::indexing
