// Claim: a lock that its process holds until it lets go or dies, for processes that share a folder.
#ifndef FUSELAGE_IR_BASE_CLAIM_H_
#define FUSELAGE_IR_BASE_CLAIM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fuselage {

class Claim {
 public:
  // Makes the file, which stays. Null where another holds it.
  static absl::StatusOr<std::unique_ptr<Claim>> Try(const std::string& path);

  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  explicit Claim(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_CLAIM_H_
