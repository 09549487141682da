#include "harness/base/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "harness/base/exit_code.h"

namespace fuselage::harness {
namespace {

constexpr auto kHandlerTime = std::chrono::milliseconds(1500);

struct State {
  std::mutex mutex;
  std::function<void(int)> handler;
};

// Never destroyed: the watching thread outlives main's statics.
State& TheState() {
  static State* state = new State;
  return *state;
}

sigset_t Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

void Watch() {
  const sigset_t set = Interrupts();
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  std::mutex mutex;
  std::condition_variable done_changed;
  bool done = false;
  const auto handle = [&] {
    {
      // Held while the handler runs: a scope that is about to end waits, and the report is whole.
      std::lock_guard<std::mutex> lock(TheState().mutex);
      if (TheState().handler) TheState().handler(signal);
    }
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    done_changed.notify_one();
  };
  try {
    std::thread(handle).detach();
  } catch (const std::exception&) {
    _exit(kInterrupted);  // No thread, or no memory, for a last word.
  }
  std::unique_lock<std::mutex> lock(mutex);
  done_changed.wait_for(lock, kHandlerTime, [&] { return done; });
  _exit(kInterrupted);
}

}  // namespace

void WatchInterrupts() {
  const sigset_t set = Interrupts();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  try {
    TheState();
    std::thread(Watch).detach();
  } catch (const std::exception&) {
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // A signal then ends the process, as it does without us.
  }
}

InterruptScope::InterruptScope(std::function<void(int signal)> handler) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  TheState().handler = std::move(handler);
}

InterruptScope::~InterruptScope() {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  TheState().handler = nullptr;
}

}  // namespace fuselage::harness
