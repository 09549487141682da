// The commit that a checkout is at.
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "harness/environment.h"
#include "harness/testing/runs.h"
#include "harness/testing/testing.h"

namespace fuselage::harness {
namespace {

using testing::MakeWorkplace;
using testing::Overwrite;

TEST(Environment, CommitOfACheckout) {
  const std::string commit(40, 'a'), other(40, 'b');
  const std::string folder = MakeWorkplace("git").folder;
  std::filesystem::create_directories(folder + "/.git/refs/heads");
  EXPECT_EQ(GitCommit(folder), "unknown");
  Overwrite(folder + "/.git/HEAD", commit + "\n");
  EXPECT_EQ(GitCommit(folder), commit) << "detached";
  Overwrite(folder + "/.git/HEAD", "ref: refs/heads/main\n");
  Overwrite(folder + "/.git/packed-refs", "# pack-refs\n" + other + " refs/heads/main\n");
  EXPECT_EQ(GitCommit(folder), other) << "packed";
  Overwrite(folder + "/.git/refs/heads/main", commit + "\n");
  EXPECT_EQ(GitCommit(folder), commit) << "a loose ref is newer";

  const std::string worktree = folder + "/worktree";
  std::filesystem::create_directories(worktree);
  std::filesystem::create_directories(folder + "/.git/worktrees/w");
  Overwrite(worktree + "/.git", "gitdir: " + folder + "/.git/worktrees/w\n");
  Overwrite(folder + "/.git/worktrees/w/HEAD", "ref: refs/heads/main\n");
  Overwrite(folder + "/.git/worktrees/w/commondir", "../..\n");
  EXPECT_EQ(GitCommit(worktree), commit);
  EXPECT_EQ(GitCommit(""), "unknown");
}

}  // namespace
}  // namespace fuselage::harness
