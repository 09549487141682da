// Einsum as permutes, reshapes, products and sums: two operands at a time, from the left.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::einsum {
namespace {

using Ints = std::vector<int64_t>;
// One for each dimension: a letter, or for the dimensions of "..." -1 for the last, -2 for the one before it.
using Labels = std::vector<int>;

bool Has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// "a...b" for a tensor of `rank` dimensions; a negative rank: of an output, whose "..." has `ellipsis` dimensions.
absl::StatusOr<Labels> ParseTerm(absl::string_view term, int rank, int ellipsis) {
  Labels labels;
  const size_t dots = term.find("...");
  const int letters = static_cast<int>(term.size()) - (dots == absl::string_view::npos ? 0 : 3);
  if (rank >= 0) ellipsis = rank - letters;
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (int k = ellipsis; k > 0; --k) labels.push_back(-k);
      i += 2;
    } else if (absl::ascii_isalpha(term[i])) {
      labels.push_back(term[i]);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("found ", Quote(term), ", wanted letters and at most one '...'"));
    }
  }
  if (rank >= 0 && static_cast<int>(labels.size()) != rank) {
    return absl::InvalidArgumentError(absl::StrCat("found ", Quote(term), " for a tensor of rank ", rank));
  }
  return labels;
}

struct Term {
  Value value;
  Labels labels;
};

class Einsum {
 public:
  explicit Einsum(Call& call) : call_(call) {}

  absl::Status Convert(std::string equation) {
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const std::vector<std::string> sides = absl::StrSplit(equation, "->");
    const std::vector<std::string> inputs = absl::StrSplit(sides[0], ',');
    if (sides.size() > 2 || static_cast<int>(inputs.size()) != call_.num_operands()) {
      return absl::InvalidArgumentError(
          absl::StrCat("found ", inputs.size(), " terms for ", call_.num_operands(), " operands, wanted as many"));
    }
    std::vector<Term> terms;
    for (int i = 0; i < call_.num_operands(); ++i) {
      ASSIGN_OR_RETURN(Labels labels, ParseTerm(inputs[i], call_.rank(i), 0));
      RETURN_IF_ERROR(NoteSizes(labels, call_.operand(i)));
      terms.push_back({call_.operand(i), std::move(labels)});
    }
    ASSIGN_OR_RETURN(const Labels output, OutputOf(sides, terms));
    for (Term& term : terms) RETURN_IF_ERROR(TakeDiagonals(term));
    Term result = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) {
      Labels needed = output;
      for (size_t k = i + 1; k < terms.size(); ++k) {
        needed.insert(needed.end(), terms[k].labels.begin(), terms[k].labels.end());
      }
      ASSIGN_OR_RETURN(result, Product(std::move(result), std::move(terms[i]), needed));
    }
    RETURN_IF_ERROR(SumOthers(result, output));
    RETURN_IF_ERROR(Permute(result, output));
    return call_.Result("identity", {result.value});
  }

 private:
  // The largest size that a label has, now and if the batch were one more: a dimension of 1 broadcasts.
  absl::Status NoteSizes(const Labels& labels, const Value& value) {
    const Shape &shape = value.shape(), &next = call_.builder().ShapeAtNextBatch(value);
    for (size_t i = 0; i < labels.size(); ++i) {
      auto [it, is_new] = sizes_.emplace(labels[i], std::make_pair(shape[i], next[i]));
      if (is_new || shape[i] == 1 || it->second.first == shape[i]) continue;
      if (it->second.first != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("found a label with the sizes ", it->second.first, " and ", shape[i], ", wanted one"));
      }
      it->second = {shape[i], next[i]};
    }
    return absl::OkStatus();
  }

  // The stated one, or the "..." and then all letters that occur once, in alphabetical order.
  absl::StatusOr<Labels> OutputOf(const std::vector<std::string>& sides, const std::vector<Term>& terms) {
    int ellipsis = 0;
    std::map<int, int> counts;
    for (const Term& term : terms) {
      for (const int label : term.labels) {
        ++counts[label];
        ellipsis = std::max(ellipsis, -label);
      }
    }
    Labels output;
    if (sides.size() == 2) {
      ASSIGN_OR_RETURN(output, ParseTerm(sides[1], -1, ellipsis));
    } else {
      for (const auto& [label, count] : counts) {
        if (label < 0 || count == 1) output.push_back(label);
      }
    }
    for (size_t i = 0; i < output.size(); ++i) {
      if (counts[output[i]] == 0 || std::count(output.begin(), output.end(), output[i]) > 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("found the output ", Quote(sides.back()), ", wanted labels of the operands, each once"));
      }
    }
    return output;
  }

  absl::Status Emit(Term& term, absl::string_view op, AttributeMap attributes) {
    ASSIGN_OR_RETURN(term.value,
                     call_.EmitHelper(absl::StrCat(op, ++helpers_), op, {term.value}, std::move(attributes)));
    return absl::OkStatus();
  }

  absl::Status Permute(Term& term, const Labels& order) {
    if (term.labels == order) return absl::OkStatus();
    Ints dims;
    for (const int label : order) {
      dims.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
    }
    term.labels = order;
    return Emit(term, "permute", {{"dims", dims}});
  }

  // One dimension for each group of labels, of which `ones` count as 1. Where the batch is, the size is inferred.
  absl::Status Reshape(Term& term, const std::vector<Labels>& groups, const Labels& ones = {}) {
    Ints shape;
    int64_t elements = 1;
    int inferred = -1;
    for (const Labels& group : groups) {
      int64_t size = 1, next = 1;
      for (const int label : group) {
        if (Has(ones, label)) continue;
        size *= sizes_[label].first;
        next *= sizes_[label].second;
      }
      if (size != next) inferred = static_cast<int>(shape.size());
      shape.push_back(size);
      elements *= size;
    }
    if (shape == term.value.shape()) return absl::OkStatus();
    if (inferred >= 0 && elements > 0) shape[inferred] = -1;
    return Emit(term, "reshape", {{"shape", shape}, {"allow_zero", true}});
  }

  // Dimensions of one label become one: side by side, as n * n elements, every (n + 1)th of which is on the diagonal.
  absl::Status TakeDiagonals(Term& term) {
    for (size_t i = 0; i < term.labels.size(); ++i) {
      const int label = term.labels[i];
      const auto again = std::find(term.labels.begin() + i + 1, term.labels.end(), label);
      if (again == term.labels.end()) continue;
      const int64_t n = term.value.shape()[i], second = again - term.labels.begin();
      if (term.value.shape()[second] != n) {
        return absl::UnimplementedError(absl::StrCat("found a diagonal of ", ToString(term.value.type())));
      }
      Ints dims, shape;
      Labels labels;
      for (size_t k = 0; k < term.labels.size(); ++k) {
        if (k == i || static_cast<int64_t>(k) == second) continue;
        dims.push_back(static_cast<int64_t>(k));
        labels.push_back(term.labels[k]);
        shape.push_back(term.value.shape()[k]);
      }
      dims.insert(dims.end(), {static_cast<int64_t>(i), second});
      labels.push_back(label);
      shape.push_back(n * n);
      RETURN_IF_ERROR(Emit(term, "permute", {{"dims", dims}}));
      RETURN_IF_ERROR(Emit(term, "reshape", {{"shape", shape}, {"allow_zero", true}}));
      RETURN_IF_ERROR(Emit(term, "slice",
                           {{"starts", Ints{0}},
                            {"ends", Ints{n * n}},
                            {"axes", Ints{static_cast<int64_t>(shape.size()) - 1}},
                            {"steps", Ints{n + 1}}}));
      term.labels = std::move(labels);
      return TakeDiagonals(term);
    }
    return absl::OkStatus();
  }

  // Sums over the labels that are not among `needed`.
  absl::Status SumOthers(Term& term, const Labels& needed) {
    Ints dims;
    Labels left;
    for (size_t i = 0; i < term.labels.size(); ++i) {
      if (Has(needed, term.labels[i])) {
        left.push_back(term.labels[i]);
      } else {
        dims.push_back(static_cast<int64_t>(i));
      }
    }
    if (dims.empty()) return absl::OkStatus();
    term.labels = std::move(left);
    return Emit(term, "sum", {{"dims", dims}});
  }

  // The product of a and b, summed over the labels that are not among `needed`: a matmul where there are such that both
  // have, an elementwise product otherwise.
  absl::StatusOr<Term> Product(Term a, Term b, const Labels& needed) {
    const auto with = [](Labels labels, const Labels& more) {
      labels.insert(labels.end(), more.begin(), more.end());
      return labels;
    };
    RETURN_IF_ERROR(SumOthers(a, with(needed, b.labels)));
    RETURN_IF_ERROR(SumOthers(b, with(needed, a.labels)));
    Labels batch, contracted, rows, columns;
    for (const int label : a.labels) {
      (!Has(b.labels, label) ? rows : Has(needed, label) ? batch : contracted).push_back(label);
    }
    for (const int label : b.labels) {
      if (!Has(a.labels, label)) columns.push_back(label);
    }
    const Labels ones_a = Ones(a), ones_b = Ones(b);
    for (const int label : contracted) {
      if (Has(ones_a, label) != Has(ones_b, label)) {
        return absl::UnimplementedError("found a sum over a dimension that broadcasts, wanted equal sizes");
      }
    }
    const bool matmul = !contracted.empty();
    std::vector<Labels> groups_a, groups_b;
    for (const int label : batch) groups_a.push_back({label});
    groups_b = groups_a;
    groups_a.push_back(rows);
    groups_a.push_back(matmul ? contracted : Labels{});
    groups_b.push_back(contracted);
    groups_b.push_back(columns);
    RETURN_IF_ERROR(Permute(a, with(with(batch, rows), contracted)));
    RETURN_IF_ERROR(Permute(b, with(with(batch, contracted), columns)));
    RETURN_IF_ERROR(Reshape(a, groups_a, ones_a));
    RETURN_IF_ERROR(Reshape(b, groups_b, ones_b));
    const std::string op = matmul ? "matmul" : "mul";
    Term result;
    ASSIGN_OR_RETURN(result.value, call_.EmitHelper(absl::StrCat(op, ++helpers_), op, {a.value, b.value}));
    result.labels = with(with(batch, rows), columns);
    std::vector<Labels> groups;
    Labels ones;
    for (const int label : result.labels) {
      groups.push_back({label});
      const bool one_a = Has(ones_a, label) || !Has(a.labels, label);
      const bool one_b = Has(ones_b, label) || !Has(b.labels, label);
      if (one_a && one_b) ones.push_back(label);
    }
    RETURN_IF_ERROR(Reshape(result, groups, ones));
    return result;
  }

  // The labels whose dimension is 1 here, and may be more elsewhere.
  Labels Ones(const Term& term) {
    Labels ones;
    for (size_t i = 0; i < term.labels.size(); ++i) {
      if (term.value.shape()[i] == 1 && sizes_[term.labels[i]].first != 1) ones.push_back(term.labels[i]);
    }
    return ones;
  }

  Call& call_;
  std::map<int, std::pair<int64_t, int64_t>> sizes_;
  int helpers_ = 0;
};

absl::Status ConvertEinsum(Call& call) {
  if (!call.HasAttribute("equation")) return absl::InvalidArgumentError("found no attribute 'equation', wanted it");
  for (int i = 0; i < call.num_operands(); ++i) {
    if (!call.has(i)) return absl::InvalidArgumentError(absl::StrCat("found input ", i, " absent, wanted it"));
  }
  const absl::Status converted = Einsum(call).Convert(call.String("equation", ""));
  return Annotate(converted, absl::StrCat("attribute 'equation' ", Quote(call.String("equation", ""))));
}

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Einsum", 12, {1, kAnyNumber}, {1, 1}, "equation=STRING", ConvertEinsum},
  });
}

}  // namespace fuselage::onnx::converters::einsum
