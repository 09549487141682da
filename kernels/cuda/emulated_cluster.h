// Blocks of a cluster, emulated: each in a thread of its own, one of them at a time.
#ifndef FUSELAGE_KERNELS_CUDA_EMULATED_CLUSTER_H_
#define FUSELAGE_KERNELS_CUDA_EMULATED_CLUSTER_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace fuselage::cuda {

class Block;

class Cluster {
 public:
  // Of so many blocks, of so many warps each.
  Cluster(int blocks, int warps) : blocks_(blocks), warps_(blocks * warps), ended_(blocks) {}

  // f(rank) of each, in order of their ranks as far as they do not wait.
  void Run(const std::function<void(int)>& f);
  // Lets the others run until `condition` holds. False: all others wait in vain, or have ended.
  bool WaitUntil(const std::function<bool()>& condition);

  void Arrive() { ++arrived_; }
  // The same until all warps have arrived.
  bool WaitForAll() {
    return WaitUntil([this] { return arrived_ == warps_; });
  }

  // Null before a block begins, and when it has ended.
  Block*& block(int rank) { return blocks_[rank]; }
  Block* FindOrNull(int rank) const {
    return rank >= 0 && rank < static_cast<int>(blocks_.size()) ? blocks_[rank] : nullptr;
  }

 private:
  void Pass();

  std::vector<Block*> blocks_;
  const int warps_;
  int arrived_ = 0;
  std::vector<bool> ended_;
  std::mutex mutex_;
  std::condition_variable passed_;
  int turn_ = 0;
  int in_vain_ = 0;  // Conditions that did not hold, in a row.
};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_EMULATED_CLUSTER_H_
