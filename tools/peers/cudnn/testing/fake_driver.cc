// A libcuda.so.1 with no device, which loads any kernel all the same: cuDNN then compiles plans for a device that is
// described to it. It looks for all of these functions before it believes in a driver.

namespace {

int Loaded(void** handle) {
  *handle = handle;
  return 0;
}

}  // namespace

#define FUSELAGE_NO_DEVICE(name) \
  extern "C" int name() { return 100; /* CUDA_ERROR_NO_DEVICE */ }
FUSELAGE_NO_DEVICE(cuCtxGetCurrent)
FUSELAGE_NO_DEVICE(cuCtxGetDevice)
FUSELAGE_NO_DEVICE(cuCtxGetLimit)
FUSELAGE_NO_DEVICE(cuCtxPopCurrent)
FUSELAGE_NO_DEVICE(cuCtxPushCurrent)
FUSELAGE_NO_DEVICE(cuDeviceGet)
FUSELAGE_NO_DEVICE(cuDeviceGetAttribute)
FUSELAGE_NO_DEVICE(cuDeviceGetCount)
FUSELAGE_NO_DEVICE(cuDevicePrimaryCtxRelease)
FUSELAGE_NO_DEVICE(cuDevicePrimaryCtxReset)
FUSELAGE_NO_DEVICE(cuDevicePrimaryCtxRetain)
FUSELAGE_NO_DEVICE(cuFuncGetAttribute)
FUSELAGE_NO_DEVICE(cuFuncSetAttribute)
FUSELAGE_NO_DEVICE(cuGetErrorName)
FUSELAGE_NO_DEVICE(cuGetErrorString)
FUSELAGE_NO_DEVICE(cuInit)
FUSELAGE_NO_DEVICE(cuKernelGetAttribute)
FUSELAGE_NO_DEVICE(cuKernelSetAttribute)
FUSELAGE_NO_DEVICE(cuLaunchCooperativeKernel)
FUSELAGE_NO_DEVICE(cuLaunchKernel)
FUSELAGE_NO_DEVICE(cuLaunchKernelEx)
FUSELAGE_NO_DEVICE(cuLibraryLoadFromFile)
FUSELAGE_NO_DEVICE(cuLibraryUnload)
FUSELAGE_NO_DEVICE(cuLinkAddData)
FUSELAGE_NO_DEVICE(cuLinkAddData_v2)
FUSELAGE_NO_DEVICE(cuLinkAddFile_v2)
FUSELAGE_NO_DEVICE(cuLinkComplete)
FUSELAGE_NO_DEVICE(cuLinkCreate)
FUSELAGE_NO_DEVICE(cuLinkCreate_v2)
FUSELAGE_NO_DEVICE(cuLinkDestroy)
FUSELAGE_NO_DEVICE(cuMemcpyDtoH_v2)
FUSELAGE_NO_DEVICE(cuModuleGetFunction)
FUSELAGE_NO_DEVICE(cuModuleGetGlobal_v2)
FUSELAGE_NO_DEVICE(cuModuleLoadData)
FUSELAGE_NO_DEVICE(cuModuleLoadDataEx)
FUSELAGE_NO_DEVICE(cuModuleLoadFatBinary)
FUSELAGE_NO_DEVICE(cuModuleUnload)
FUSELAGE_NO_DEVICE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
FUSELAGE_NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
FUSELAGE_NO_DEVICE(cuStreamGetCtx)
FUSELAGE_NO_DEVICE(cuStreamSynchronize)
FUSELAGE_NO_DEVICE(cuTensorMapEncodeTiled)

extern "C" int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
extern "C" int cuLibraryLoadData(void** library) { return Loaded(library); }
extern "C" int cuLibraryGetKernel(void** kernel) { return Loaded(kernel); }
