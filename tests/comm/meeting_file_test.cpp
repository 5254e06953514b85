#include "comm/tcp/meeting_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace lockstep::comm::tcp::meeting_file_test {
namespace {

TEST(MeetingFile, IsForItsUserAlone) {
  const testing::TempDir dir;
  const std::string path = (dir / "meet").string();
  const MeetingNotice notice = {
      .key = 7, .host = 8, .addresses = {Address::any(AF_INET, 0).with_port(99)}};
  {
    const MeetingFile file(path, notice);
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    std::string problem;
    const auto read = read_meeting_file(path, problem);
    ASSERT_TRUE(read) << problem;
    EXPECT_EQ(read->key, 7U);
    EXPECT_EQ(read->host, 8U);
    EXPECT_EQ(read->addresses.at(0).to_string(), "0.0.0.0:99");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(MeetingFile, IsWholeWhenTwoJobsNameTheSameFile) {
  const testing::TempDir dir;
  const std::string path = (dir / "meet").string();
  const auto meet_often = [&](uint64_t key) {
    const MeetingNotice notice = {
        .key = key, .host = 8, .addresses = {Address::any(AF_INET, 0).with_port(99)}};
    for (int i = 0; i < 300; ++i) {
      const MeetingFile file(path, notice);
      std::string problem;
      const auto read = read_meeting_file(path, problem);
      EXPECT_TRUE(read || problem == "the file is not there") << problem;
    }
  };
  std::thread other([&] { EXPECT_NO_THROW(meet_often(1)); });
  EXPECT_NO_THROW(meet_often(2));
  other.join();
}

// Fuzzing found that a file with host names made ranks query a name service, which took seconds for
// each name.
TEST(MeetingFile, HoldsNumbersAndNoNamesOfHosts) {
  const testing::TempDir dir;
  const std::string path = (dir / "meet").string();
  const auto read = [&](const std::string& addresses) {
    std::ofstream(path) << "lockstep meeting 1\n7 8\n" << addresses;
    std::filesystem::permissions(path, std::filesystem::perms{0600});
    std::string problem;
    const auto notice = read_meeting_file(path, problem);
    return notice ? notice->addresses.back().to_string() : problem;
  };
  EXPECT_EQ(read("10.0.0.7 99\n"), "10.0.0.7:99");
  EXPECT_EQ(read("10.0.0.7 99\n2001:db8::1 65535\n"), "[2001:db8::1]:65535");
  EXPECT_EQ(read("localhost 99\n"), "the file is not rank 0's");
  EXPECT_EQ(read("10.0.0.7 99\nlocalhost 99\n"), "the file is not rank 0's");
}

}  // namespace
}  // namespace lockstep::comm::tcp::meeting_file_test
