#include "kernels/cuda/encode_tile_map.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>

namespace fuselage::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// Null: the driver has none. It is asked by name, for the runtime is linked, the driver's library is not.
Encode FindEncode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(function) : nullptr;
}

}  // namespace

bool EncodeTileMap(TileMap* map) {
  static const Encode encode = FindEncode();
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(map->columns), static_cast<cuuint64_t>(map->rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(map->columns)};
  const cuuint32_t box[] = {TileMap::kColumns, static_cast<cuuint32_t>(map->box_rows)}, apart[] = {1, 1};
  CUtensorMap encoded;
  static_assert(sizeof(encoded) == sizeof(map->encoded));
  if (encode != nullptr &&
      encode(&encoded, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<uint8_t*>(map->data), sizes, pitch, box, apart,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS) {
    std::memcpy(map->encoded, &encoded, sizeof(encoded));
    return true;
  }
  cudaMemset(nullptr, 0, 1);  // Its error stays.
  return false;
}

}  // namespace fuselage::cuda
