#include "ir/base/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace fuselage {

absl::StatusOr<std::unique_ptr<Claim>> Claim::Try(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  auto claim = std::unique_ptr<Claim>(new Claim(fd));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return claim;
  if (errno == EWOULDBLOCK || errno == EINTR) return nullptr;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
}

Claim::~Claim() { close(fd_); }

}  // namespace fuselage
