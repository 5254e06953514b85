// One run a folder.
#pragma once

#include <filesystem>

namespace lockstep::trainers {

// Holds an exclusive lock on a file, created if missing, until destroyed or until the process ends
// in whatever way. The file then names the holder and stays behind, unlocked.
class FileLock {
 public:
  // Errors: UsageError naming the holder's process, host and start when another run holds it;
  // EnvironmentError when the file cannot be opened.
  explicit FileLock(const std::filesystem::path& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int fd_ = -1;
};

}  // namespace lockstep::trainers
