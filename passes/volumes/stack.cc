#include "passes/volumes/stack.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fuselage::volumes {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

// A chain of permutes and reshapes.
class Views {
 public:
  Views(Node* from, Node* before)
      : value_(from), name_(from->name()), sources_(from->SourcesOrSelf()), before_(before) {}

  Views& Permute(Ints dims) { return Add("permute", {{"dims", std::move(dims)}}); }
  Views& Reshape(Ints shape) { return Add("reshape", {{"shape", std::move(shape)}}); }
  absl::StatusOr<Node*> value() const { return value_; }

 private:
  Views& Add(const char* op, AttributeMap attributes) {
    if (!value_.ok()) return *this;
    value_ = before_->graph().AddFunction(absl::StrCat(name_, "_", op), op, {*value_}, std::move(attributes), before_);
    if (value_.ok()) (*value_)->AddSources(sources_);
    return *this;
  }

  absl::StatusOr<Node*> value_;
  std::string name_;
  std::vector<std::string> sources_;
  Node* before_;
};

}  // namespace

absl::StatusOr<Stack> StackOf(Node* volume, Node* before) {
  const Shape shape = volume->tensor_type().shape;
  Views views(volume, before);
  if (shape[1] > 1 && shape[2] > 1) views.Permute({0, 2, 1, 3, 4});
  ASSIGN_OR_RETURN(Node * images, views.Reshape({-1, shape[1], shape[3], shape[4]}).value());
  return Stack{images, shape[2]};
}

absl::StatusOr<Node*> VolumeOf(const Stack& stack, Node* before) {
  Views views(stack.images, before);
  const int64_t channels = stack.dim(1), height = stack.dim(2), width = stack.dim(3);
  if (channels == 1 || stack.frames == 1) return views.Reshape({-1, channels, stack.frames, height, width}).value();
  return views.Reshape({-1, stack.frames, channels, height, width}).Permute({0, 2, 1, 3, 4}).value();
}

absl::StatusOr<Node*> SheetOf(const Stack& stack, Node* before) {
  Views views(stack.images, before);
  views.Permute({0, 2, 3, 1}).Reshape({-1, stack.frames, stack.dim(2) * stack.dim(3), stack.dim(1)});
  return views.Permute({0, 3, 1, 2}).value();
}

absl::StatusOr<Stack> StackOfSheet(Node* sheet, int64_t height, Node* before) {
  const Shape shape = sheet->tensor_type().shape;
  Views views(sheet, before);
  views.Permute({0, 2, 3, 1}).Reshape({-1, height, shape[3] / height, shape[1]});
  ASSIGN_OR_RETURN(Node * images, views.Permute({0, 3, 1, 2}).value());
  return Stack{images, shape[2]};
}

absl::StatusOr<Stack> StackOfChannels(const Stack& stack, int64_t count, Node* before) {
  const int64_t channels = stack.dim(1) / count, height = stack.dim(2), width = stack.dim(3);
  Views views(stack.images, before);
  views.Permute({0, 2, 3, 1}).Reshape({-1, height, width, count, channels}).Permute({0, 3, 1, 2, 4});
  ASSIGN_OR_RETURN(Node * images, views.Reshape({-1, height, width, channels}).Permute({0, 3, 1, 2}).value());
  return Stack{images, stack.frames * count};
}

}  // namespace fuselage::volumes
