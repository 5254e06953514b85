#include "comm/shared/socket_mesh.h"

#include <chrono>
#include <optional>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep::comm::socket_mesh_test {
namespace {

TEST(SocketMesh, ADescriptorReachesARankAndNoneThatHasEnded) {
  const std::string token = fmt::format("test-{}", ::getpid());
  SocketMesh here(token, 0, 2);
  std::optional<SocketMesh> peer(std::in_place, token, 1, 2);
  peer->connect_below();
  here.accept_above();
  EXPECT_TRUE(here.send_fd(1, STDERR_FILENO));
  ASSERT_TRUE(peer->wait_for_message(0, std::chrono::seconds(10)));
  EXPECT_TRUE(peer->receive_fd(0).valid());
  peer.reset();
  EXPECT_FALSE(here.send_fd(1, STDERR_FILENO));
}

}  // namespace
}  // namespace lockstep::comm::socket_mesh_test
