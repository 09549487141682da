// SIGINT and SIGTERM: a last word, then exit code 130, within two seconds whatever the other threads are doing.
#ifndef FUSELAGE_HARNESS_BASE_INTERRUPT_H_
#define FUSELAGE_HARNESS_BASE_INTERRUPT_H_

#include <functional>

namespace fuselage::harness {

// Call first in main: blocks both signals in this thread and the threads it makes, and waits for them in one of its
// own.
void WatchInterrupts();

// While it lives, a signal runs `handler` on the watching side before the process ends. The handler may lock what the
// other threads lock only for moments; it is given up on after 1.5 s.
class InterruptScope {
 public:
  explicit InterruptScope(std::function<void(int signal)> handler);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_BASE_INTERRUPT_H_
