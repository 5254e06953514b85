// An LD_PRELOAD library that simulates a slow disk: flushing a checkpoint's file takes
// SLOW_FSYNC_MS milliseconds.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

extern "C" int fsync(int fd) {
  std::error_code error;
  const auto file = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
  const char* milliseconds = std::getenv("SLOW_FSYNC_MS");
  if (milliseconds != nullptr && file.string().find(".safetensors") != std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(milliseconds)));
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}
