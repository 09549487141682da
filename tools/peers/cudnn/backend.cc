#include "tools/peers/cudnn/backend.h"

#include <utility>

#include "ir/base/status.h"

namespace fuselage::peers::cudnn {

absl::StatusOr<Descriptor> Empty(const Library& library, int type, absl::string_view what) {
  void* created = nullptr;
  RETURN_IF_ERROR(library.Check(library.BackendCreateDescriptor(type, &created), what));
  return Descriptor(created, library.BackendDestroyDescriptor);
}

Builder::Builder(const Library& library, int type, std::string what)
    : library_(library), what_(std::move(what)), descriptor_(nullptr, library.BackendDestroyDescriptor) {
  absl::StatusOr<Descriptor> created = Empty(library, type, what_);
  status_ = created.status();
  if (created.ok()) descriptor_ = *std::move(created);
}

Builder& Builder::Set(int attribute, int type, int64_t count, const void* values) {
  if (status_.ok()) {
    status_ = library_.Check(library_.BackendSetAttribute(descriptor_.get(), attribute, type, count, values), what_);
  }
  return *this;
}

absl::StatusOr<Descriptor> Builder::Finish() {
  RETURN_IF_ERROR(status_);
  RETURN_IF_ERROR(library_.Check(library_.BackendFinalize(descriptor_.get()), what_));
  return std::move(descriptor_);
}

}  // namespace fuselage::peers::cudnn
