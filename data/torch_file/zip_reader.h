// Reads members of a zip file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/input_file.h"

namespace lockstep::data {

struct ZipMember {
  uint64_t header = 0;  // where its local header begins
  uint64_t stored = 0;  // bytes in the file
  uint64_t size = 0;    // bytes of its content
  uint32_t crc = 0;     // CRC-32 of its content; 0: perhaps not computed
  bool deflated = false;
};

// Names are only keys: no path is made from them. Members are plain or deflated, and sizes may have
// 64 bits; encryption and several disks are refused.
class ZipReader {
 public:
  // Reads only the directory. Errors: CheckpointError for a file that breaks the format, is
  // truncated, names a member twice or claims members that overlap; EnvironmentError.
  explicit ZipReader(const std::filesystem::path& path);

  const std::string& file() const { return file_.name(); }
  const std::map<std::string, ZipMember>& members() const { return members_; }

  // Fills `out`, which is as long as the member. Errors: CheckpointError where the content does not
  // match its CRC, if it has one; EnvironmentError. Requires: `name` is a member.
  void read(const std::string& name, std::span<std::byte> out) const;

 private:
  struct Directory {
    uint64_t members = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  struct Data {
    uint64_t offset = 0;  // where a member's stored bytes begin
    uint32_t crc = 0;     // of its content; 0: not computed
  };

  Directory find_directory() const;
  Directory read_end64(uint64_t end) const;
  void read_directory(const Directory& directory);
  Data data_of(const std::string& name, const ZipMember& member) const;
  void inflate(uint64_t offset, const ZipMember& member, std::span<std::byte> out) const;
  std::vector<std::byte> bytes(uint64_t offset, uint64_t count) const;
  [[noreturn]] void refuse(const std::string& why) const;

  InputFile file_;
  uint64_t data_end_ = 0;  // where the directory begins
  std::map<std::string, ZipMember> members_;
};

}  // namespace lockstep::data
