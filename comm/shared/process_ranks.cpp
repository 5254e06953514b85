#include "comm/shared/process_ranks.h"

#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <sys/mman.h>

#include "comm/gather.h"
#include "comm/random_number.h"
#include "comm/shared/shared_communicator.h"
#include "core/errno_text.h"
#include "core/error.h"

namespace lockstep::comm {
namespace {

constexpr std::chrono::milliseconds kHeadStart{250};
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

EnvironmentError no_memory(size_t bytes, std::string why) {
  return EnvironmentError(fmt::format("no {} bytes of memory to share between ranks", bytes),
                          std::move(why),
                          "more memory for the job, or fewer ranks on this host");
}

std::shared_ptr<void> map(int fd, size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw no_memory(bytes, "mmap: " + errno_text());
  if (bytes >= kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  return {memory, [bytes](void* mapped) { ::munmap(mapped, bytes); }};
}

class SharedProcesses : public SharedCommunicator {
 public:
  SharedProcesses(std::unique_ptr<SharedHost> host, std::chrono::milliseconds stall_abort)
      : SharedCommunicator(std::move(host), stall_abort) {}
  SharedProcesses(const SharedProcesses&) = delete;
  SharedProcesses& operator=(const SharedProcesses&) = delete;
  ~SharedProcesses() override {
    if (messages_ && failure()) messages_->give_up(*failure());
  }

  void keep(std::unique_ptr<MessageCommunicator> messages) { messages_ = std::move(messages); }

 private:
  // Waits at once, because other ranks might meanwhile wait for sums in shared memory, and such
  // waits make no progress in MPI.
  std::unique_ptr<Work> start_library_sum(const AllReduce& what) override {
    auto work = messages_->start_all_reduce(what);
    work->wait();
    return work;
  }

  // Ends first: peers must not take this rank for lost.
  std::unique_ptr<MessageCommunicator> messages_;
};

void check_one_host(const Launch& launch, int ranks) {
  if (launch.local_size == ranks) return;
  throw EnvironmentError(fmt::format("{} of {} ranks run on its host", launch.local_size, ranks));
}

// Rank 0's, on all ranks.
std::string random_token(Communicator& ranks) {
  uint64_t bits = ranks.rank() == 0 ? random_number() : 0;
  ranks.broadcast(std::as_writable_bytes(std::span(&bits, 1)), 0);
  return fmt::format("{:016x}", bits);
}

}  // namespace

Segment ProcessHost::allocate(size_t bytes_per_rank, const Operation& operation) {
  const size_t stride = (bytes_per_rank / kPage + 1) * kPage;  // a mapping is not empty
  const size_t bytes = stride * static_cast<size_t>(size());
  const UniqueFd fd = rank() == 0 ? create(bytes, operation) : receive(operation);
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
UniqueFd ProcessHost::create(size_t bytes, const Operation& operation) const {
  UniqueFd fd(::memfd_create("lockstep", MFD_CLOEXEC));
  std::string why;
  if (!fd.valid() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    why = "memfd_create: " + errno_text();
    fd = UniqueFd();
  }
  for (int peer = 1; peer < size(); ++peer) {
    if (!mesh_.send_fd(peer, fd.get())) throw lost_peer_error(operation, rank(), {&peer, 1});
  }
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

SharedRanks share_memory(std::unique_ptr<MessageCommunicator>& messages,
                         const Launch& launch,
                         std::chrono::milliseconds stall_abort) {
  Communicator& ranks = *messages;
  std::string problem = attempt(ranks, [&] { check_one_host(launch, ranks.size()); });
  if (!problem.empty()) return {nullptr, problem};

  const std::string token = random_token(ranks);
  std::optional<SocketMesh> mesh;
  std::unique_ptr<SharedProcesses> shared;
  const std::function<void()> steps[] = {
      [&] { mesh.emplace(token, ranks.rank(), ranks.size()); },
      [&] { mesh->connect(); },
      [&] {
        auto host =
            std::make_unique<ProcessHost>(std::move(*mesh), shares_cores(launch), stall_abort);
        shared = std::make_unique<SharedProcesses>(std::move(host), stall_abort);
      },
  };
  for (const auto& step : steps) {
    problem = attempt(ranks, step);
    if (!problem.empty()) return {nullptr, problem};
  }
  shared->keep(std::move(messages));
  return {std::move(shared), {}};
}

}  // namespace lockstep::comm
