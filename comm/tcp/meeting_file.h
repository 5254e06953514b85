// The file in which rank 0 leaves its address and a secret for the other ranks of its user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/tcp/address.h"

namespace lockstep::comm::tcp {

struct MeetingNotice {
  uint64_t key = 0;   // random
  uint64_t host = 0;  // rank 0's id
  std::vector<Address> addresses;
};

// A file that its user alone can read; the destructor removes it. It replaces one that another job
// left.
class MeetingFile {
 public:
  // Errors: EnvironmentError with the system's reason.
  MeetingFile(std::string path, const MeetingNotice& notice);
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;
  ~MeetingFile();

 private:
  const std::string path_;
  const uint64_t key_;
};

// Returns nothing, with the reason in `problem`, where there is no such file or it holds no notice.
// Errors: EnvironmentError for a file that others could have written or read.
std::optional<MeetingNotice> read_meeting_file(const std::string& path, std::string& problem);

}  // namespace lockstep::comm::tcp
