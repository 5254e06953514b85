#include "comm/shared/process_host.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/core.h>
#include <sys/mman.h>

#include "core/error.h"

namespace lockstep::comm {
namespace {

constexpr std::chrono::milliseconds kHeadStart{250};
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

std::string last_error() {
  return std::error_code(errno, std::generic_category()).message();
}

EnvironmentError no_memory(size_t bytes, std::string why) {
  return EnvironmentError(fmt::format("no {} bytes of memory to share between ranks", bytes),
                          std::move(why));
}

std::shared_ptr<void> map(int fd, size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw no_memory(bytes, "mmap: " + last_error());
  if (bytes >= kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  return {memory, [bytes](void* mapped) { ::munmap(mapped, bytes); }};
}

}  // namespace

Segment ProcessHost::allocate(size_t bytes_per_rank, const Operation& operation) {
  const size_t stride = (bytes_per_rank + kPage) / kPage * kPage;
  const size_t bytes = stride * static_cast<size_t>(size());
  const UniqueFd fd = rank() == 0 ? create(bytes) : receive(operation);
  Segment segment{.memory = map(fd.get(), bytes), .parts = {}, .bytes = bytes_per_rank};
  auto* memory = static_cast<std::byte*>(segment.memory.get());
  for (int r = 0; r < size(); ++r) {
    segment.parts.push_back(memory + static_cast<size_t>(r) * stride);
  }
  // A page lies near the core that touches it first. Kernels before 5.14 do that at the first use.
  ::madvise(segment.parts[static_cast<size_t>(rank())], stride, MADV_POPULATE_WRITE);
  return segment;
}

bool ProcessHost::is_gone(int rank) {
  if (!mesh_.is_closed(rank)) return false;
  std::optional<Clock::time_point>& since = closed_since_[static_cast<size_t>(rank)];
  if (!since) since = Clock::now();
  return Clock::now() - *since >= kHeadStart;
}

// Tells the others either way.
UniqueFd ProcessHost::create(size_t bytes) const {
  UniqueFd fd(::memfd_create("lockstep", MFD_CLOEXEC));
  std::string why;
  if (!fd.valid() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    why = "memfd_create: " + last_error();
    fd = UniqueFd();
  }
  for (int peer = 1; peer < size(); ++peer) mesh_.send_fd(peer, fd.get());
  if (!fd.valid()) throw no_memory(bytes, why);
  return fd;
}

UniqueFd ProcessHost::receive(const Operation& operation) const {
  constexpr int kFrom = 0;
  if (!mesh_.wait_for_message(kFrom, stall_abort_)) {
    throw stall_error(operation, rank(), {&kFrom, 1}, stall_abort_);
  }
  UniqueFd fd = mesh_.receive_fd(kFrom);
  if (fd.valid()) return fd;
  if (mesh_.is_closed(kFrom)) throw lost_peer_error(operation, rank(), {&kFrom, 1});
  throw EnvironmentError("rank 0 has no memory to share", "its own message says why");
}

}  // namespace lockstep::comm
