// A file for sm_90a only: this instruction exists in no other architecture.
__global__ void WgmmaFence() { asm volatile("wgmma.fence.sync.aligned;"); }
