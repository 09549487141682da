#include "kernels/cuda/int8_gemm.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/cuda/overlap.h"

namespace fuselage::cuda {
namespace {

constexpr size_t kMostWorkspace = size_t{32} << 20;  // What NVIDIA recommends for sm_90.

// The functions in use, and a handle. Types and constants are the same in cuBLASLt 12 and 13.
struct CublasLt {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmul) matmul;
  cublasLtHandle_t handle = nullptr;
};

absl::Status Check(cublasStatus_t status, absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": cuBLASLt status ", static_cast<int>(status)));
}

absl::StatusOr<CublasLt> Open() {
  // The headers' own version first.
  const std::string names[] = {absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR), "libcublasLt.so.13",
                               "libcublasLt.so.12"};
  void* library = nullptr;
  for (const std::string& name : names) {
    if ((library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
  }
  if (library == nullptr) return absl::UnavailableError(absl::StrCat("no cuBLASLt: ", dlerror()));
  CublasLt lt;
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) absl::StrAppend(&missing, " ", name);
  };
  find(lt.create, "cublasLtCreate");
  find(lt.desc_create, "cublasLtMatmulDescCreate");
  find(lt.desc_set, "cublasLtMatmulDescSetAttribute");
  find(lt.desc_destroy, "cublasLtMatmulDescDestroy");
  find(lt.layout_create, "cublasLtMatrixLayoutCreate");
  find(lt.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(lt.preference_create, "cublasLtMatmulPreferenceCreate");
  find(lt.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(lt.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(lt.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(lt.matmul, "cublasLtMatmul");
  if (!missing.empty()) return absl::UnavailableError(absl::StrCat("cuBLASLt lacks", missing));
  RETURN_IF_ERROR(Check(lt.create(&lt.handle), "cublasLtCreate"));
  return lt;
}

// Once a process; never closed, since kernels may live until its end.
const absl::StatusOr<CublasLt>& Library() {
  static const auto* const library = new absl::StatusOr<CublasLt>(Open());
  return *library;
}

class Gemm final : public Int8Gemm {
 public:
  explicit Gemm(const CublasLt& lt) : lt_(lt) {}
  ~Gemm() override {
    for (cublasLtMatrixLayout_t layout : {w_, x_, y_}) {
      if (layout != nullptr) lt_.layout_destroy(layout);
    }
    if (desc_ != nullptr) lt_.desc_destroy(desc_);
  }

  // Column-major, as cuBLAS sees it: y^T [columns, rows] = (w^T [depth, columns])^T * x^T [depth, rows].
  absl::Status Init(const Size& size) {
    RETURN_IF_ERROR(Check(lt_.desc_create(&desc_, CUBLAS_COMPUTE_32I, CUDA_R_32I), "cublasLtMatmulDescCreate"));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    RETURN_IF_ERROR(Check(lt_.desc_set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)),
                          "cublasLtMatmulDescSetAttribute"));
    RETURN_IF_ERROR(InitLayout(&w_, CUDA_R_8I, size.depth, size.columns));
    RETURN_IF_ERROR(InitLayout(&x_, CUDA_R_8I, size.depth, size.rows));
    RETURN_IF_ERROR(InitLayout(&y_, CUDA_R_32I, size.columns, size.rows));

    cublasLtMatmulPreference_t preference = nullptr;
    RETURN_IF_ERROR(Check(lt_.preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
    const absl::Status status = FindAlgorithm(preference);
    lt_.preference_destroy(preference);
    return status;
  }

  absl::Status Run(const int8_t* x, const int8_t* w, int32_t* y, void* workspace, void* stream) const override {
    const int32_t alpha = 1, beta = 0;
    LibraryHasLaunched();
    return Check(lt_.matmul(lt_.handle, desc_, &alpha, w, w_, x, x_, &beta, y, y_, y, y_, &algorithm_, workspace,
                            workspace_bytes_, static_cast<cudaStream_t>(stream)),
                 "cublasLtMatmul");
  }

 private:
  absl::Status InitLayout(cublasLtMatrixLayout_t* layout, cudaDataType_t type, int64_t rows, int64_t columns) {
    return Check(lt_.layout_create(layout, type, rows, columns, /*ld=*/rows), "cublasLtMatrixLayoutCreate");
  }

  absl::Status FindAlgorithm(cublasLtMatmulPreference_t preference) {
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return Check(lt_.preference_set(preference, attribute, &value, sizeof(value)),
                   "cublasLtMatmulPreferenceSetAttribute");
    };
    RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMostWorkspace}));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      RETURN_IF_ERROR(set(attribute, uint32_t{kAlignment}));
    }
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status =
        lt_.heuristic(lt_.handle, desc_, w_, x_, y_, y_, preference, /*requestedAlgoCount=*/1, &result, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0 || result.state != CUBLAS_STATUS_SUCCESS) {
      return absl::NotFoundError(absl::StrCat("cuBLASLt has no algorithm, status ", static_cast<int>(status)));
    }
    algorithm_ = result.algo;
    workspace_bytes_ = static_cast<int64_t>(result.workspaceSize);
    return absl::OkStatus();
  }

  const CublasLt& lt_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, y_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Int8Gemm>> Int8Gemm::Create(const Size& size) {
  const absl::StatusOr<CublasLt>& library = Library();
  RETURN_IF_ERROR(library.status());
  auto gemm = std::make_unique<Gemm>(*library);
  RETURN_IF_ERROR(gemm->Init(size));
  return gemm;
}

}  // namespace fuselage::cuda
