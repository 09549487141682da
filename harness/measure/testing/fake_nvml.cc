// A stand-in for NVIDIA's libnvidia-ml.so.1, with one GPU whose counter a test sets. FAKE_NVML_OLD: one from before
// Volta, which counted no energy.
namespace {

unsigned long long millijoules = 0;
int started = 0, init_result = 0, energy_result = 0;
int device;

}  // namespace

extern "C" {

void FakeNvmlSet(unsigned long long now, int init, int energy) {
  millijoules = now;
  init_result = init;
  energy_result = energy;
}
int FakeNvmlStarted() { return started; }

int nvmlInit_v2() {
  started += init_result == 0;
  return init_result;
}
int nvmlShutdown() {
  --started;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = &device;
  return index == 0 && started > 0 ? 0 : 2;
}
int nvmlDeviceGetName(void* handle, char* name, unsigned length) {
  const char kName[] = "NVIDIA Fake 1";
  if (handle != &device || length < sizeof kName) return 2;
  for (unsigned i = 0; i < sizeof kName; ++i) name[i] = kName[i];
  return 0;
}
#ifndef FAKE_NVML_OLD
int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* energy) {
  if (handle != &device || started < 1) return 2;
  *energy = millijoules;
  return energy_result;
}
#endif
}
