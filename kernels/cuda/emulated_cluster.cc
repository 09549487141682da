#include "kernels/cuda/emulated_cluster.h"

#include <algorithm>
#include <thread>

namespace fuselage::cuda {

void Cluster::Run(const std::function<void(int)>& f) {
  if (blocks_.size() == 1) return f(0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < static_cast<int>(blocks_.size()); ++rank) {
    threads.emplace_back([this, rank, &f] {
      std::unique_lock<std::mutex> lock(mutex_);
      passed_.wait(lock, [&] { return turn_ == rank; });
      lock.unlock();
      f(rank);
      lock.lock();
      ended_[rank] = true;
      in_vain_ = 0;
      Pass();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Cluster::Pass() {
  const auto blocks = static_cast<int>(blocks_.size());
  for (int i = 0; i < blocks; ++i) {
    turn_ = (turn_ + 1) % blocks;
    if (!ended_[turn_]) break;
  }
  passed_.notify_all();
}

bool Cluster::WaitUntil(const std::function<bool()>& condition) {
  std::unique_lock<std::mutex> lock(mutex_);
  const int rank = turn_;
  while (!condition()) {
    if (++in_vain_ > std::count(ended_.begin(), ended_.end(), false)) return false;
    Pass();
    passed_.wait(lock, [&] { return turn_ == rank; });
  }
  in_vain_ = 0;
  return true;
}

}  // namespace fuselage::cuda
