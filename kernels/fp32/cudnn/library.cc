#include "kernels/fp32/cudnn/library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace fuselage::fp32::cudnn {
namespace {

absl::StatusOr<const Library*> Load() {
  void* handle = nullptr;
  for (const char* name : {"libcudnn.so.9", "libcudnn.so.8", "/usr/local/cuda/lib64/libcudnn.so.9"}) {
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
  }
  if (handle == nullptr) return absl::UnimplementedError(absl::StrCat("cuDNN is not installed: ", dlerror()));
  auto* library = new Library();
#define FUSELAGE_CUDNN_LOAD(name, result, parameters)                                      \
  library->name = reinterpret_cast<decltype(library->name)>(dlsym(handle, "cudnn" #name)); \
  if (library->name == nullptr) return absl::UnimplementedError("cuDNN here lacks cudnn" #name);
  FUSELAGE_CUDNN_FUNCTIONS(FUSELAGE_CUDNN_LOAD)
#undef FUSELAGE_CUDNN_LOAD
  return library;
}

}  // namespace

absl::StatusOr<const Library*> Library::Open() {
  static const auto* library = new absl::StatusOr<const Library*>(Load());
  return *library;
}

absl::Status Library::Check(int status, absl::string_view what) const {
  if (status == 0) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("cuDNN: ", what, ": ", GetErrorString(status)));
}

}  // namespace fuselage::fp32::cudnn
