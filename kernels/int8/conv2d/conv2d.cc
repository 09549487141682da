#include "kernels/int8/conv2d/conv2d.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/int8/conv2d/columns.h"
#include "kernels/int8/conv2d/variants.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::Isa;
using kernels::Kernel;
using kernels::KernelDesc;
using kernels::Placement;

class Conv2d : public Kernel {
 public:
  Conv2d(const KernelDesc& desc, const Variant& variant, const Problem& problem)
      : Kernel(desc),
        algorithm_(SharesColumns(problem) ? MakeColumns(problem, variant.make) : variant.make(problem)),
        output_(problem.PlacedOutput()),
        output_zero_point_(static_cast<uint8_t>(problem.epilogue.zero_point)) {
    set_variant(variant.name);
    set_scratch_bytes(algorithm_->scratch_bytes());
    set_weight_bytes(algorithm_->constant_bytes(), {algorithm_->weight()});
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    Arguments arguments;
    arguments.input = inputs[0].data;
    arguments.residual = inputs.size() > 1 ? inputs[1].data : nullptr;
    arguments.output = outputs[0].data;
    for (int64_t n = 0; !output_.placement.dense() && n < output_.batch; ++n) {
      output_.FillHalo(arguments.output, output_zero_point_, n, 0, output_.height);
    }
    algorithm_->Run(arguments, context);
  }

  std::unique_ptr<Algorithm> algorithm_;
  const kernels::PlacedTensor output_;
  const uint8_t output_zero_point_;  // As stored.
};

bool IsTrue(bool (*condition)(const Problem&), const Problem& problem) {
  return condition == nullptr || condition(problem);
}

// The variant that the description asks for; empty: any.
absl::string_view WantedOf(const KernelDesc& desc) {
  absl::string_view wanted;
  for (const auto& [name, value] : desc.attributes) {
    if (name == "variant") wanted = value.as_string();
  }
  return wanted;
}

// The one that runs the problem: the one that the description asks for, where that can, or else the last that is
// worthwhile. Null: none.
const Variant* Choose(absl::Span<const Variant> variants, const Problem& problem, const KernelDesc& desc) {
  const absl::string_view wanted = WantedOf(desc);
  const Variant* own = nullptr;
  for (auto row = variants.rbegin(); row != variants.rend() && (own == nullptr || !wanted.empty()); ++row) {
    if (!desc.isa.Includes(row->isa) || !CpuSupports(row->isa) || !IsTrue(row->supports, problem)) continue;
    if (row->name == wanted) return &*row;
    if (own == nullptr && IsTrue(row->worthwhile, problem)) own = &*row;
  }
  return own;
}

struct Choice {
  Problem problem;
  const Variant* variant;
};
absl::StatusOr<Choice> ChoiceFor(absl::Span<const Variant> variants, const KernelDesc& desc) {
  ASSIGN_OR_RETURN(Problem problem, ProblemOf(desc));
  problem = std::move(problem).ColumnAsRow();
  const Variant* variant = Choose(variants, problem, desc);
  if (variant == nullptr) return absl::UnimplementedError("int8.conv2d: no variant");
  return Choice{std::move(problem), variant};
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateFrom(absl::Span<const Variant> variants, const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Choice choice, ChoiceFor(variants, desc));
  return std::make_unique<Conv2d>(desc, *choice.variant, choice.problem);
}

// No placement makes it choose another variant than it would for dense operands.
bool TakesPlacements(absl::Span<const Variant> variants, const KernelDesc& desc) {
  const absl::StatusOr<Choice> choice = ChoiceFor(variants, desc);
  return choice.ok() && choice->variant == Choose(variants, choice->problem.Dense(), desc);
}

Placement PreferredInputPlacement(absl::Span<const Variant> variants, const KernelDesc& desc) {
  // Spares whoever compiles for other instruction sets the sums over all weights.
  const bool any = std::any_of(variants.begin(), variants.end(), [&](const Variant& variant) {
    return variant.preferred_input_placement != nullptr && desc.isa.Includes(variant.isa) && CpuSupports(variant.isa);
  });
  if (!any) return Placement();
  const absl::StatusOr<Problem> problem = ProblemOf(desc);
  if (!problem.ok()) return Placement();
  const Variant* variant = Choose(variants, problem->Dense(), desc);
  return variant == nullptr || variant->preferred_input_placement == nullptr
             ? Placement()
             : variant->preferred_input_placement(*problem);
}

std::vector<std::string> VariantsFor(const KernelDesc& desc) {
  std::vector<std::string> names;
  const absl::StatusOr<Choice> choice = ChoiceFor(kVariants, desc);
  if (!choice.ok()) return names;
  names.push_back(choice->variant->name);
  for (auto variant = std::rbegin(kVariants); variant != std::rend(kVariants); ++variant) {
    const bool can = desc.isa.Includes(variant->isa) && CpuSupports(variant->isa) && variant->isa != Isa::kScalar;
    if (can && &*variant != choice->variant && IsTrue(variant->supports, choice->problem)) {
      names.push_back(variant->name);
    }
  }
  return names;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) { return CreateFrom(kVariants, desc); }

absl::StatusOr<std::unique_ptr<Kernel>> CreateBand(absl::Span<const Variant> variants, const KernelDesc& whole,
                                                   KernelDesc band,
                                                   const std::optional<kernels::PoolWindow::Axis>& row_pool) {
  ASSIGN_OR_RETURN(const Choice choice, ChoiceFor(variants, whole));
  ASSIGN_OR_RETURN(Problem problem, ProblemOf(band));
  problem.row_pool = row_pool;
  if (row_pool) band.outputs[0].shape[3] = row_pool->out;
  const Variant& variant = *choice.variant;
  for (const Problem* p : {&choice.problem, &std::as_const(problem)}) {
    if (IsTrue(variant.supports, *p) && variant.computes_bands != nullptr && variant.computes_bands(*p)) continue;
    return absl::UnimplementedError(
        absl::StrCat("bands of an input with ", PlacementText(band.input_placement(0)), " by ", variant.name));
  }
  return std::make_unique<Conv2d>(band, variant, problem);
}

kernels::KernelEntry EntryOf(absl::Span<const Variant> variants) {
  kernels::KernelEntry entry;
  entry.op = "int8.conv2d";
  entry.layout = kernels::LayoutRule::kNhwc;
  entry.create = [variants](const KernelDesc& desc) { return CreateFrom(variants, desc); };
  entry.takes_placements = [variants](const KernelDesc& desc) { return TakesPlacements(variants, desc); };
  entry.preferred_placement = [variants](const KernelDesc& desc) { return PreferredInputPlacement(variants, desc); };
  entry.variant = [variants](const KernelDesc& desc) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Choice choice, ChoiceFor(variants, desc));
    return choice.variant->name;
  };
  return entry;
}

std::vector<int> RowsFor(const KernelDesc& desc) {
  std::vector<int> rows;
  absl::StatusOr<Problem> problem = ProblemOf(desc);
  if (!problem.ok()) return rows;
  problem = std::move(*problem).ColumnAsRow();
  std::set<Isa> chosen;  // Of these there is a row behind, which is preferred wherever one before is.
  for (int i = static_cast<int>(std::size(kVariants)) - 1; i >= 0; --i) {
    const Variant& variant = kVariants[i];
    if (!desc.isa.Includes(variant.isa) || !IsTrue(variant.supports, *problem)) continue;
    const bool first = IsTrue(variant.worthwhile, *problem) && chosen.insert(variant.isa).second;
    if (first || variant.name == WantedOf(desc)) rows.insert(rows.begin(), i);
  }
  return rows;
}

void Register(kernels::KernelRegistry& registry) {
  kernels::KernelEntry entry = EntryOf(kVariants);
  entry.variants = VariantsFor;
  entry.table = {{"kernels/int8/conv2d/variants.h"}, "int8::conv2d::kVariants", "int8::conv2d::EntryOf", RowsFor};
  registry.Register(std::move(entry));
}

}  // namespace fuselage::int8::conv2d
