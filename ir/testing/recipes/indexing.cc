// Gathers, scatters, topk, sampling. Few and light: most of a graph is for what passes match.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/testing/draft.h"

namespace fuselage::testing::recipes::indexing {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

Node* PickTensorOrNull(Draft& draft, int low, int high) {
  return draft.PickOrNull([&](const Node& node) {
    if (!node.type().is_tensor()) return false;
    const TensorType& type = node.tensor_type();
    return type.rank() >= low && type.rank() <= high && type.num_elements() <= 200 && type.num_elements() > 0;
  });
}

// Constant positions on an axis of `dim` elements, of `shape` (at most 16 in all).
Node* Positions(Draft& draft, int64_t dim, const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<double> values;
  for (int i = 0; i < 3; ++i) values.push_back(static_cast<double>(draft.random().Between(-dim, dim - 1)));
  Node* list = draft.AddGetAttr(draft.VectorParameter("index", DType::kI64, count, values));
  return shape.size() == 1 ? list : draft.AddFunction("reshape", {list}, {{"shape", shape}});
}

bool IndexSelect(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 1, 4);
  if (x == nullptr) return false;
  const int64_t axis = draft.random().Between(0, x->tensor_type().rank() - 1);
  const Shape shape = draft.random().OneIn(3) ? Shape{1, 2} : Shape{draft.random().Between(1, 3)};
  Node* index = Positions(draft, x->tensor_type().shape[axis], shape);
  return Done(draft.AddInRandomSpelling({"index_select", {x, index}, {}, {{"dim", axis}}}));
}

// One position on an axis for each element of the others, or of their first ones.
Shape LineShape(Draft& draft, const Shape& shape, int64_t axis) {
  Shape lines(shape.size(), 1);
  lines[axis] = draft.random().Between(1, 3);
  const int64_t other = draft.random().Between(0, static_cast<int64_t>(shape.size()) - 1);
  if (other != axis) lines[other] = std::min<int64_t>(shape[other], 4);
  return lines;
}

bool Gather(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 1, 4);
  if (x == nullptr) return false;
  const Shape shape = x->tensor_type().shape;
  const int64_t axis = draft.random().Between(0, x->tensor_type().rank() - 1);
  Node* index = Positions(draft, shape[axis], LineShape(draft, shape, axis));
  return Done(draft.AddInRandomSpelling({"gather", {x, index}, {}, {{"dim", axis}}}));
}

bool GatherNd(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 1, 4);
  if (x == nullptr) return false;
  Node* indices = Positions(draft, x->tensor_type().shape[0], {draft.random().Between(1, 4), 1});
  return Done(draft.AddInRandomSpelling({"gather_nd", {x, indices}, {}, {}}));
}

bool Scatter(Draft& draft) {
  Node* x = draft.PickFloatOrNull(1, 4);
  if (x == nullptr || x->tensor_type().num_elements() == 0) return false;
  Random& random = draft.random();
  const TensorType type = x->tensor_type();
  const std::string reduce = random.From(std::vector<std::string>{"none", "add", "mul", "max", "min"});
  const bool nd = random.OneIn(3);
  const int64_t axis = nd ? 0 : random.Between(0, type.rank() - 1);
  Shape shape = LineShape(draft, type.shape, axis);
  if (nd) shape = {shape[0], 1};
  Node* index = Positions(draft, type.shape[axis], shape);
  if (nd) {
    shape = type.shape;
    shape[0] = index->tensor_type().shape[0];
  }
  Node* src =
      draft.AddGetAttr(draft.SeededParameter("src", {type.dtype, std::move(shape), std::nullopt, Layout::kRowMajor}));
  AttributeMap attributes = {{"reduce", reduce}};
  if (!nd) attributes.emplace("dim", axis);
  return Done(draft.AddInRandomSpelling({nd ? "scatter_nd" : "scatter", {x, index, src}, {}, attributes}));
}

bool OneHot(Draft& draft) {
  Node* index = Positions(draft, 5, {draft.random().Between(1, 3)});
  Node* values = draft.AddGetAttr(draft.VectorParameter("values", DType::kF32, 2, {0, 1}));
  return Done(draft.AddInRandomSpelling(
      {"one_hot", {index, values}, {}, {{"num_classes", 4}, {"dim", draft.random().Between(-2, 1)}}}));
}

bool ReverseSequence(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 2, 4);
  if (x == nullptr) return false;
  const Shape shape = x->tensor_type().shape;
  const bool batch_first = draft.random().OneIn(2);
  if (shape[!batch_first] > 16) return false;
  const double length = static_cast<double>(draft.random().Between(0, shape[batch_first]));
  Node* lengths = draft.AddGetAttr(draft.VectorParameter("lengths", DType::kI64, shape[!batch_first], {length}));
  return Done(draft.AddInRandomSpelling({"reverse_sequence",
                                         {x, lengths},
                                         {},
                                         {{"batch_dim", int64_t{!batch_first}}, {"time_dim", int64_t{batch_first}}}}));
}

bool Triangle(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 2, 4);
  return x != nullptr &&
         Done(draft.AddInRandomSpelling(
             {draft.random().OneIn(2) ? "tril" : "triu", {x}, {}, {{"diagonal", draft.random().Between(-2, 2)}}}));
}

// Positions follow from comparisons: only of what may be rounded.
bool Topk(Draft& draft) {
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr) return false;
  Random& random = draft.random();
  const int64_t axis = random.Between(0, x->tensor_type().rank() - 1), dim = x->tensor_type().shape[axis];
  if (dim < 1) return false;
  Node* found = draft.AddInRandomSpelling(
      {"topk",
       {x},
       {},
       {{"k", random.Between(1, std::min<int64_t>(dim, 3))}, {"dim", axis}, {"largest", random.OneIn(2)}}});
  if (found == nullptr) return false;
  draft.AddInRandomSpelling({"getitem", {found}, {}, {{"index", random.OneIn(3) ? 1 : 0}}});
  return true;
}

// Whether an element is 0 is a comparison, too.
bool Nonzero(Draft& draft) {
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr) return false;
  Node* found = draft.AddInRandomSpelling({"nonzero", {x}, {}, {}});
  if (found == nullptr) return false;
  draft.AddInRandomSpelling({"getitem", {found}, {}, {{"index", draft.random().OneIn(3) ? 1 : 0}}});
  return true;
}

// Of boxes that are given, by computed scores.
bool Nms(Draft& draft) {
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr || x->tensor_type().num_elements() < 1 || x->tensor_type().dtype != DType::kF32) return false;
  Random& random = draft.random();
  const int64_t n = std::min<int64_t>(4, x->tensor_type().num_elements());
  Node* all = draft.AddFunction("reshape", {x}, {{"shape", Shape{1, 1, -1}}});
  Node* scores = draft.AddFunction("slice", {all}, {{"starts", Ints{0}}, {"ends", Ints{n}}, {"axes", Ints{2}}});
  Node* flat = draft.AddGetAttr(draft.VectorParameter("boxes", DType::kF32, 4 * n, {0, 0, 2, 2, 1, 1, 4, 2}));
  Node* boxes = draft.AddFunction("reshape", {flat}, {{"shape", Shape{1, n, 4}}});
  Node* found = draft.AddInRandomSpelling({"nms",
                                           {boxes, scores},
                                           {},
                                           {{"max_output_boxes_per_class", random.Between(1, 3)},
                                            {"iou_threshold", random.OneIn(2) ? 0.1 : 0.5},
                                            {"center_point_box", random.OneIn(2)}}});
  if (found == nullptr) return false;
  draft.AddInRandomSpelling({"getitem", {found}, {}, {{"index", random.OneIn(3) ? 1 : 0}}});
  return true;
}

bool Resize(Draft& draft) {
  Random& random = draft.random();
  const std::string mode = random.From(std::vector<std::string>{"nearest", "nearest", "linear", "cubic"});
  Node* x = mode == "nearest" ? PickTensorOrNull(draft, 2, 4) : draft.PickFloatOrNull(2, 4);
  if (x == nullptr || x->tensor_type().num_elements() == 0 || x->tensor_type().num_elements() > 200) return false;
  const int rank = x->tensor_type().rank();
  const Ints dims = {rank - 1, rank - 2};
  AttributeMap attributes = {
      {"dims", dims}, {"sizes", Ints{random.Between(1, 6), random.Between(1, 6)}}, {"mode", mode}};
  if (random.OneIn(2)) {
    attributes.emplace("coordinates", random.From(std::vector<std::string>{"align_corners", "asymmetric"}));
  }
  if (random.OneIn(3)) attributes.emplace("antialias", true);
  Node* y = draft.AddInRandomSpelling({"resize", {x}, {}, std::move(attributes)});
  if (y == nullptr) return false;
  if (mode == "cubic") draft.set_magnitude(*y, 2 * draft.magnitude(*x));
  return true;
}

// Positions follow from comparisons here too.
bool MaxPoolWithIndices(Draft& draft) {
  Node* x = draft.PickToRoundOrNull(3, 5);
  if (x == nullptr || x->tensor_type().num_elements() == 0) return false;
  Random& random = draft.random();
  const int n = x->tensor_type().rank() - 2;
  Ints kernel, stride, padding(2 * n, 0);
  for (int i = 0; i < n; ++i) {
    kernel.push_back(random.Between(1, std::min<int64_t>(3, x->tensor_type().shape[2 + i])));
    stride.push_back(random.Between(1, 2));
    if (kernel.back() > 1) padding[i] = random.Between(0, 1);
  }
  Node* found = draft.AddInRandomSpelling({absl::StrCat("max_pool", n, "d_with_indices"),
                                           {x},
                                           {},
                                           {{"kernel_size", kernel}, {"stride", stride}, {"padding", padding}}});
  if (found == nullptr) return false;
  draft.AddInRandomSpelling({"getitem", {found}, {}, {{"index", random.OneIn(3) ? 1 : 0}}});
  return true;
}

bool GridSample(Draft& draft) {
  Node* x = draft.PickFloatOrNull(4, 5);
  if (x == nullptr || x->tensor_type().num_elements() == 0) return false;
  Random& random = draft.random();
  const int rank = x->tensor_type().rank();
  Shape places(rank, 2);
  places[0] = x->tensor_type().shape[0];
  places.back() = rank - 2;
  Node* grid = draft.AddGetAttr(
      draft.SeededParameter("grid", {DType::kF32, std::move(places), std::nullopt, Layout::kRowMajor}));
  const std::string mode = random.From(std::vector<std::string>{"nearest", "bilinear", "bicubic"});
  Node* y = draft.AddInRandomSpelling(
      {"grid_sample",
       {x, grid},
       {},
       {{"mode", mode},
        {"padding_mode", random.From(std::vector<std::string>{"zeros", "border", "reflection"})},
        {"align_corners", random.OneIn(2)}}});
  if (y == nullptr) return false;
  if (mode == "bicubic") draft.set_magnitude(*y, 3 * draft.magnitude(*x));
  return true;
}

bool RoiAlign(Draft& draft) {
  Node* x = draft.PickFloatOrNull(4, 4);
  if (x == nullptr || x->tensor_type().num_elements() == 0) return false;
  Random& random = draft.random();
  Node* edges = draft.AddGetAttr(draft.VectorParameter("boxes", DType::kF32, 8, {0, 0.5, 2.5, 1.75, -1, 1, 3, 2}));
  Node* boxes = draft.AddFunction("reshape", {edges}, {{"shape", Shape{2, 4}}});
  Node* batch = draft.AddGetAttr(draft.VectorParameter("batch", DType::kI64, 2, {0}));
  return Done(draft.AddInRandomSpelling({"roi_align",
                                         {x, boxes, batch},
                                         {},
                                         {{"output_height", random.Between(1, 3)},
                                          {"output_width", random.Between(1, 3)},
                                          {"sampling_ratio", random.Between(0, 2)},
                                          {"aligned", random.OneIn(2)},
                                          {"mode", random.OneIn(4) ? "max" : "avg"}}}));
}

template <size_t n>
bool AnyOf(Draft& draft, bool (*const (&cooks)[n])(Draft&)) {
  return cooks[draft.random().Between(0, n - 1)](draft);
}
bool AnyGather(Draft& draft) { return AnyOf(draft, {IndexSelect, Gather, GatherNd}); }
bool AnyPlace(Draft& draft) { return AnyOf(draft, {Topk, MaxPoolWithIndices, MaxPoolWithIndices, Nonzero, Nms}); }
bool AnyResampling(Draft& draft) { return AnyOf(draft, {Resize, Resize, GridSample, RoiAlign}); }
bool AnyFill(Draft& draft) { return AnyOf(draft, {OneHot, ReverseSequence, Triangle}); }

}  // namespace

void Register(Recipes& recipes) {
  recipes.Add(Graphs::kSome, {{1, AnyGather}, {1, AnyFill}, {1, Scatter}, {1, AnyPlace}, {1, AnyResampling}});
}

}  // namespace fuselage::testing::recipes::indexing
