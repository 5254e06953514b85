#include "core/input_file.h"

#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace lockstep::input_file_test {
namespace {

using testing::TempDir;
using testing::write_text;

TEST(ContentsOf, AreAllBytesOfAFile) {
  const TempDir dir;
  const std::string bytes("\0\1\n\xff", 4);
  write_text(dir / "file", bytes);
  write_text(dir / "empty", "");
  EXPECT_EQ(contents_of(dir / "file"), bytes);
  EXPECT_EQ(contents_of(dir / "empty"), "");
}

TEST(ContentsOf, AreNothingWhereThereIsNoRegularFile) {
  const TempDir dir;
  EXPECT_EQ(contents_of(dir / "absent"), std::nullopt);
  EXPECT_EQ(contents_of(dir.path()), std::nullopt);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(contents_of(dir / "pipe"), std::nullopt);  // and nobody waits for its writer
}

}  // namespace
}  // namespace lockstep::input_file_test
