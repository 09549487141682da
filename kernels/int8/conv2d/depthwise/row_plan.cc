#include "kernels/int8/conv2d/depthwise/row_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/int8/conv2d/core/output_constants.h"

namespace fuselage::int8::conv2d::depthwise {
namespace {

constexpr int kMostRows = 4;                           // Output rows that are computed from the same columns,
constexpr int64_t kMostColumnBytes = 12 * kStepBytes;  // unless these are larger.

RowPlan PlanAlongRow(const Geometry& g, const DwordForm& form) {
  RowPlan plan = {1, {0}, false, {}, form.rows_step, {{}}};
  for (int64_t dword = 0; dword < CeilDiv(g.kernel_width, form.rows); ++dword) plan.reads[0].push_back(dword);
  return plan;
}

RowPlan PlanRows(const Geometry& g, const DwordForm& form, int count) {
  RowPlan plan;
  plan.count = count;
  const bool joins = form.rows == 2 && count == g.out_height;  // A sum of weights does not fit a byte.
  int64_t beside = -1;
  for (int64_t row = 0; row < count; ++row) {
    plan.taps.emplace_back();
    for (int64_t ky = 0; ky < g.kernel_height; ++ky) {
      int64_t input = row * g.stride_y + ky * g.dilation_y;
      const bool inside = input >= g.pad_top && input < g.pad_top + g.in_height;
      if (joins && !inside) input = beside < 0 ? beside = input : beside;
      plan.taps.back().push_back(input);
      plan.inputs.push_back(input);
    }
  }
  plan.joins_padding = beside >= 0;
  std::sort(plan.inputs.begin(), plan.inputs.end());
  plan.inputs.erase(std::unique(plan.inputs.begin(), plan.inputs.end()), plan.inputs.end());
  plan.column_bytes = CeilDiv(plan.inputs.size(), form.rows) * form.rows_step;
  for (std::vector<int64_t>& taps : plan.taps) {
    std::vector<int64_t> reads;
    for (int64_t& tap : taps) {
      tap = std::lower_bound(plan.inputs.begin(), plan.inputs.end(), tap) - plan.inputs.begin();
      const int64_t first = tap / form.rows * form.per_rows;
      for (int64_t i = 0; i < form.per_rows; ++i) reads.push_back(first + i);
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    plan.reads.push_back(std::move(reads));
  }
  return plan;
}

}  // namespace

DwordForm FormOf(const Geometry& g, const Loops& loops) {
  if (loops.form == ColumnForm::kRows) return {loops.dword_elements, 1, 1, kStepBytes, kStepBytes};
  const int64_t dwords = g.group_in_channels() / loops.dword_elements;
  if (loops.form == ColumnForm::kSpread) {
    return {1, loops.dword_elements, dwords, kStepBytes, dwords * kStepBytes};
  }
  return {1, loops.dword_elements, dwords, kDwordBytes, kStepBytes / loops.dword_elements};
}

bool IsAlongRow(const Geometry& g, const DwordForm& form) {
  return form.rows > 1 && g.kernel_height == 1 && g.kernel_width > 1;
}

RowPlan BestRows(const Geometry& g, const Loops& loops) {
  const auto time = [&](const RowPlan& plan) {
    double steps = 0;
    for (const auto& reads : plan.reads) steps += static_cast<double>(reads.size()) * g.kernel_width;
    const double column = static_cast<double>(plan.column_bytes) / kStepBytes * loops.interleave_steps;
    const double interleaved = column * std::min(g.stride_x, g.kernel_width);
    return steps * g.out_height / plan.count + interleaved * CeilDiv(g.out_height, plan.count);
  };
  const DwordForm form = FormOf(g, loops);
  if (IsAlongRow(g, form)) return PlanAlongRow(g, form);
  RowPlan best = PlanRows(g, form, 1);
  for (int count = 2; count <= std::min(kMostRows, g.out_height); ++count) {
    RowPlan plan = PlanRows(g, form, count);
    if (plan.column_bytes <= kMostColumnBytes && time(plan) < time(best)) best = std::move(plan);
  }
  return best;
}

}  // namespace fuselage::int8::conv2d::depthwise
