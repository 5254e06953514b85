#include "tests/support/tcp_ranks.h"

#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include <sys/socket.h>

#include "comm/messages/message_communicator.h"
#include "comm/tcp/tcp_transport.h"

namespace lockstep::testing {

std::vector<std::vector<UniqueFd>> socket_mesh(int ranks) {
  const auto size = static_cast<size_t>(ranks);
  std::vector<std::vector<UniqueFd>> mesh(size);
  for (auto& row : mesh) row.resize(size);
  for (size_t a = 0; a < size; ++a) {
    for (size_t b = a + 1; b < size; ++b) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        throw std::runtime_error("socketpair failed");
      }
      mesh[a][b] = UniqueFd(ends[0]);
      mesh[b][a] = UniqueFd(ends[1]);
    }
  }
  return mesh;
}

void spawn_tcp_ranks(int ranks,
                     const std::function<void(Communicator&)>& body,
                     std::chrono::milliseconds stall_abort) {
  std::vector<std::vector<UniqueFd>> mesh = socket_mesh(ranks);
  std::mutex mutex;
  std::exception_ptr first_error;
  const auto run_rank = [&](int rank) {
    try {
      comm::MessageCommunicator peers(
          std::make_unique<comm::tcp::TcpTransport>(
              rank, std::move(mesh[static_cast<size_t>(rank)]), /*shares_cores=*/true),
          stall_abort);
      body(peers);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace lockstep::testing
