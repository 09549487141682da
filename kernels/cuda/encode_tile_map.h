// A TileMap for a device. Only where there is a toolkit.
#ifndef FUSELAGE_KERNELS_CUDA_ENCODE_TILE_MAP_H_
#define FUSELAGE_KERNELS_CUDA_ENCODE_TILE_MAP_H_

#include "kernels/cuda/tile_map.h"

namespace fuselage::cuda {

// Fills in map->encoded, by the driver. False, with an error for cudaGetLastError: it cannot.
bool EncodeTileMap(TileMap* map);

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_ENCODE_TILE_MAP_H_
