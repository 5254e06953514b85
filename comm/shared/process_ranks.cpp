#include "comm/shared/process_ranks.h"

#include <cerrno>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/random.h>

#include "comm/attempt.h"
#include "comm/shared/process_host.h"
#include "comm/shared/shared_communicator.h"
#include "core/error.h"

namespace lockstep::comm {
namespace {

class SharedProcesses : public SharedCommunicator {
 public:
  SharedProcesses(std::unique_ptr<SharedHost> host, std::chrono::milliseconds stall_abort)
      : SharedCommunicator(std::move(host), stall_abort) {}

  void keep(std::unique_ptr<Communicator> messages) { messages_ = std::move(messages); }

 private:
  // Waits at once: other ranks might wait for sums in memory meanwhile, which do not move MPI's on.
  std::unique_ptr<Work> start_library_sum(const AllReduce& what) override {
    auto work = messages_->start_all_reduce(what);
    work->wait();
    return work;
  }

  std::unique_ptr<Communicator> messages_;  // ends first: peers must not take this rank for lost
};

void check_one_host(const Launch& launch, int ranks) {
  if (launch.local_size == ranks) return;
  throw EnvironmentError(fmt::format("{} of {} ranks run on its host", launch.local_size, ranks));
}

// Rank 0's, on all ranks.
std::string random_token(Communicator& ranks) {
  uint64_t bits = 0;
  if (ranks.rank() == 0 && ::getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) {
    throw EnvironmentError("getrandom failed",
                           std::error_code(errno, std::generic_category()).message());
  }
  ranks.broadcast(std::as_writable_bytes(std::span(&bits, 1)), 0);
  return fmt::format("{:016x}", bits);
}

}  // namespace

SharedRanks share_memory(std::unique_ptr<Communicator>& messages,
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
      [&] { mesh->connect_below(); },
      [&] { mesh->accept_above(); },
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
