#include "comm/shared/socket_mesh.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace lockstep::comm::socket_mesh_test {
namespace {

// The two ranks of a job.
struct Pair {
  void connect() {
    std::future<void> above = std::async(std::launch::async, [&] { peer->connect(); });
    here.connect();
    above.get();
  }

  const std::string token = fmt::format("test-{}-{}", ::getpid(), ++meshes);
  SocketMesh here{token, 0, 2};
  std::optional<SocketMesh> peer{std::in_place, token, 1, 2};
  static inline int meshes = 0;
};

TEST(SocketMesh, ADescriptorReachesARankAndNoneThatHasEnded) {
  Pair ranks;
  ranks.connect();
  EXPECT_TRUE(ranks.here.send_fd(1, STDERR_FILENO));
  ASSERT_TRUE(ranks.peer->wait_for_message(0, std::chrono::seconds(10)));
  EXPECT_TRUE(ranks.peer->receive_fd(0).valid());
  ranks.peer.reset();
  EXPECT_FALSE(ranks.here.send_fd(1, STDERR_FILENO));
}

// Connects to rank 0's socket. If that fails, errno gives the reason.
UniqueFd stranger(const std::string& token) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("lockstep-{}-0", token);
  std::ranges::copy(name, address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return {};
  return socket;
}

// Connects as fast as possible, with as many connections at once as the process may have.
[[noreturn]] void flood(const std::string& token, bool as_another_user) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (as_another_user && ::setuid(65534) != 0) ::_exit(1);
  std::vector<UniqueFd> held(6000);
  for (size_t i = 0;; i = (i + 1) % held.size()) {
    held[i] = UniqueFd();
    held[i] = stranger(token);
  }
}

// Row C1: the queue was full of another user's connections, and the ranks fell back to MPI.
TEST(SocketMesh, AFloodOfStrangersKeepsNoRankOut) {
  Pair ranks;
  const bool may_change_user = ::geteuid() == 0;  // otherwise the flood comes from the same user
  std::vector<pid_t> strangers;
  for (int i = 0; i < 2; ++i) {
    strangers.push_back(::fork());
    if (strangers.back() == 0) flood(ranks.token, may_change_user);
  }
  bool is_full = false;
  for (int i = 0; i < 1000 && !is_full; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    is_full = !stranger(ranks.token).valid() && errno == EAGAIN;
  }
  EXPECT_TRUE(is_full);
  EXPECT_NO_THROW(ranks.connect());
  EXPECT_TRUE(ranks.here.send_fd(1, STDERR_FILENO));
  EXPECT_TRUE(ranks.peer->wait_for_message(0, std::chrono::seconds(10)));
  for (const pid_t stranger : strangers) {
    ::kill(stranger, SIGKILL);
    int status = 0;
    ::waitpid(stranger, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
}

TEST(SocketMesh, ARankThatCannotBeReachedIsCounted) {
  Pair ranks;
  try {
    ranks.here.connect(std::chrono::milliseconds(20));
    ADD_FAILURE() << "rank 1 never connects";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot reach 1 of the ranks"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::comm::socket_mesh_test
