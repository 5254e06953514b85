#include "core/atomic_file.h"

#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/error.h"
#include "tests/support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::read_text;
using testing::TempDir;
using testing::write_text;

// Files of this process stay below `bytes` while it lives; a write past that fails with EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_action_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_action_);
  }

 private:
  rlimit old_{};
  void (*old_action_)(int);
};

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

std::string why_of_writing(const fs::path& path, std::string_view text) {
  try {
    write_file_atomically(path, text);
  } catch (const EnvironmentError& error) {
    return error.why();
  }
  return "no error";
}

TEST(AtomicFile, WritesAndReplaces) {
  const TempDir dir;
  write_file_atomically(dir / "file", "first");
  EXPECT_EQ(read_text(dir / "file"), "first");
  write_file_atomically(dir / "file", "2");
  EXPECT_EQ(read_text(dir / "file"), "2");
  EXPECT_EQ(entries(dir.path()), 1U);
}

TEST(AtomicFile, FailureKeepsTheOldFileAndLeavesNothing) {
  const TempDir dir;
  write_file_atomically(dir / "file", "old");
  {
    const FileSizeLimit limit(4096);
    EXPECT_EQ(why_of_writing(dir / "file", std::string(8192, 'x')), "write: File too large");
  }
  EXPECT_EQ(read_text(dir / "file"), "old");
  EXPECT_EQ(entries(dir.path()), 1U);
}

TEST(AtomicFile, FailedRenameLeavesNothing) {
  const TempDir dir;
  fs::create_directory(dir / "folder");
  EXPECT_EQ(why_of_writing(dir / "folder", "x"), "rename: Is a directory");
  EXPECT_EQ(entries(dir.path()), 1U);
}

TEST(AtomicFile, NamesTheReason) {
  const TempDir dir;
  write_text(dir / "file", "");
  EXPECT_EQ(why_of_writing(dir / "none/file", "x"), "open: No such file or directory");
  EXPECT_EQ(why_of_writing(dir / "file/below", "x"), "open: Not a directory");
}

TEST(AtomicFile, ALeftoverOfTheSameProcessIdIsNoObstacle) {
  const TempDir dir;
  const std::string leftover = ".tmp.file." + std::to_string(getpid()) + ".0";
  write_text(dir / leftover, "torn");
  write_file_atomically(dir / "file", "whole");
  EXPECT_EQ(read_text(dir / "file"), "whole");
  EXPECT_EQ(read_text(dir / leftover), "torn");
}

TEST(AtomicFile, ReplacesALinkAndNotItsTarget) {
  const TempDir dir;
  write_text(dir / "target", "target");
  fs::create_symlink("target", dir / "link");
  write_file_atomically(dir / "link", "new");
  EXPECT_FALSE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(read_text(dir / "target"), "target");
}

}  // namespace
}  // namespace lockstep
