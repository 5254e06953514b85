#include "core/atomic_file.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_dir.h"

namespace lockstep::atomic_file_test {
namespace {

namespace fs = std::filesystem;
using testing::FileSizeLimit;
using testing::read_text;
using testing::TempDir;
using testing::write_text;

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

// A superuser's file would take the place of /dev/null.
TEST(AtomicFile, ReplacesNoDeviceOrPipe) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", dir / "link");
  fs::create_symlink("/dev/null", dir / "nowhere");
  for (const char* name : {"pipe", "link", "nowhere"}) {
    EXPECT_EQ(why_of_writing(dir / name, "x"),
              "a device, a pipe or a socket has that name, and it would be replaced");
  }
  EXPECT_TRUE(fs::is_fifo(dir / "link"));
  EXPECT_EQ(entries(dir.path()), 3U);
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

TEST(AtomicLink, ReplacesFilesAndLinksButNoFolders) {
  const TempDir dir;
  write_text(dir / "a", "A");
  write_text(dir / "link", "a file of that name");
  link_atomically(Folder(dir.path()), "link", "a");
  EXPECT_EQ(read_text(dir / "link"), "A");
  write_text(dir / "b", "B");
  link_atomically(Folder(dir.path()), "link", "b");
  EXPECT_EQ(read_text(dir / "link"), "B");
  EXPECT_EQ(read_text(dir / "a"), "A");
  fs::create_directory(dir / "folder");
  EXPECT_THROW(link_atomically(Folder(dir.path()), "folder", "a"), EnvironmentError);
  EXPECT_EQ(entries(dir.path()), 4U);
}

TEST(AtomicCopy, CopiesAllBytesOrNothing) {
  const TempDir dir;
  const std::string bytes("\0\1\n\xff", 4);
  write_text(dir / "from", bytes);
  copy_file_atomically(dir / "from", dir / "to");
  EXPECT_EQ(read_text(dir / "to"), bytes);
  EXPECT_THROW(copy_file_atomically(dir / "missing", dir / "to"), EnvironmentError);
  EXPECT_EQ(read_text(dir / "to"), bytes);
}

TEST(AppendedFile, GrowsAtItsEndAndAFailedAppendLeavesItAsItWas) {
  const TempDir dir;
  write_text(dir / "file", "a");
  const AppendedFile file(dir / "file");
  file.append("b");
  {
    const FileSizeLimit limit(4096);
    EXPECT_THROW(file.append(std::string(8192, 'x')), EnvironmentError);
  }
  file.append("c");
  EXPECT_EQ(read_text(dir / "file"), "abc");
}

TEST(AppendedFile, LinesAreThoseOfItsBlocks) {
  const TempDir dir;
  const AppendedFile file(dir / "file");
  // Ends of lines before, at and after the end of a block of 64 KiB, and a line longer than one.
  const std::vector<std::string> lines = {
      std::string(65535, 'a'), "", std::string(65534, 'b'), std::string(200000, 'c'), "end"};
  std::string content;
  for (const std::string& line : lines) content += line + "\n";
  content.pop_back();
  file.append(content);
  std::vector<std::string> seen;
  file.for_each_line([&](const std::string& line) { seen.push_back(line); });
  EXPECT_EQ(seen, lines);
  file.append("\n");
  seen.clear();
  file.for_each_line([&](const std::string& line) { seen.push_back(line); });
  EXPECT_EQ(seen, lines) << "an end adds no line";
}

TEST(AppendedFile, ALinkIsRefused) {
  const TempDir dir;
  fs::create_symlink("target", dir / "link");
  EXPECT_THROW(AppendedFile{dir / "link"}, EnvironmentError);
  EXPECT_FALSE(fs::exists(dir / "target"));
}

}  // namespace
}  // namespace lockstep::atomic_file_test
