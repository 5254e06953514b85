#include "comm/shared/socket_mesh.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "comm/sockets.h"
#include "core/check.h"
#include "core/errno_text.h"
#include "core/error.h"

namespace lockstep::comm {
namespace {

using Clock = std::chrono::steady_clock;

// SOCK_SEQPACKET keeps messages apart and reports the end of a connection.
constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

int checked(int result, const char* call) {
  if (result >= 0) return result;
  throw EnvironmentError(fmt::format("{} failed", call), errno_text());
}

struct Address {
  Address(const std::string& token, int rank) {
    const std::string name = fmt::format("lockstep-{}-{}", token, rank);
    LS_CHECK(name.size() < sizeof(value.sun_path), "[socket] name: got \"{}\", too long", name);
    value.sun_family = AF_UNIX;
    std::ranges::copy(name, value.sun_path + 1);  // a name after a zero is an abstract one
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }

  sockaddr_un value{};
  socklen_t size;
};

bool has_same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  checked(::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size), "SO_PEERCRED");
  return peer.uid == ::geteuid();
}

// A message of one byte, and perhaps a descriptor beside it.
struct Message {
  Message() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }

  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

}  // namespace

SocketMesh::SocketMesh(const std::string& token, int rank, int size)
    : token_(token), rank_(rank), peers_(static_cast<size_t>(size)) {
  const Address address(token, rank);
  listener_ = UniqueFd(checked(::socket(AF_UNIX, kSocketType, 0), "socket"));
  checked(::bind(listener_.get(), address.get(), address.size), "bind");
  checked(::listen(listener_.get(), SOMAXCONN), "listen");
}

void SocketMesh::connect(std::chrono::milliseconds at_most) {
  const Clock::time_point deadline = Clock::now() + at_most;
  std::vector<UniqueFd> unnamed;
  while (true) {
    accept_above(unnamed);
    connect_below();
    if (missing() == 0) break;
    if (Clock::now() > deadline) {
      throw EnvironmentError(
          fmt::format("rank {} cannot reach {} of the ranks of its host", rank_, missing()),
          fmt::format("their sockets took no connection for {:.1f} s",
                      std::chrono::duration<double>(at_most).count()),
          "ss -xp shows who connects to lockstep's sockets");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  listener_ = UniqueFd();
}

void SocketMesh::connect_below() {
  for (int peer = 0; peer < rank_; ++peer) {
    UniqueFd& connection = peers_[static_cast<size_t>(peer)];
    if (connection.valid()) continue;
    const Address address(token_, peer);
    UniqueFd socket(checked(::socket(AF_UNIX, kSocketType, 0), "socket"));
    const int result = ::connect(socket.get(), address.get(), address.size);
    if (result != 0 && errno == EAGAIN) continue;  // the queue is full
    checked(result, "connect");
    if (!has_same_user(socket.get())) {
      throw EnvironmentError(fmt::format("rank {}'s socket belongs to another user", peer));
    }
    checked(static_cast<int>(::send(socket.get(), &rank_, sizeof(rank_), MSG_NOSIGNAL)), "send");
    connection = std::move(socket);
  }
}

// unnamed: connections of the same user's processes that have not said which rank they are.
void SocketMesh::accept_above(std::vector<UniqueFd>& unnamed) {
  for (int i = 0; i < SOMAXCONN; ++i) {  // a flood does not keep this rank from its own connections
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid() && errno == EAGAIN) break;
    if (!socket.valid() && (errno == ECONNABORTED || errno == EINTR)) continue;
    checked(socket.get(), "accept");
    if (has_same_user(socket.get())) unnamed.push_back(std::move(socket));
  }
  std::erase_if(unnamed, [&](UniqueFd& socket) {
    int peer = -1;
    const auto bytes = ::recv(socket.get(), &peer, sizeof(peer), MSG_DONTWAIT);
    if (bytes < 0 && errno == EAGAIN) return false;
    const bool of_a_rank = bytes == sizeof(peer) && peer > rank_ && peer < size();
    if (of_a_rank) peers_[static_cast<size_t>(peer)] = std::move(socket);
    return true;
  });
}

int64_t SocketMesh::missing() const {
  return std::ranges::count_if(peers_, [](const UniqueFd& peer) { return !peer.valid(); }) - 1;
}

bool SocketMesh::send_fd(int to, int fd) const {
  Message message;
  if (fd >= 0) {
    cmsghdr* item = CMSG_FIRSTHDR(&message.header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(fd));
    std::memcpy(CMSG_DATA(item), &fd, sizeof(fd));
  } else {
    message.header.msg_controllen = 0;
  }
  const int socket = peers_[static_cast<size_t>(to)].get();
  if (::sendmsg(socket, &message.header, MSG_NOSIGNAL) >= 0) return true;
  if (errno == EPIPE || errno == ECONNRESET) return false;
  throw EnvironmentError("a rank cannot hand memory to the ranks of its host",
                         "sendmsg: " + errno_text(),
                         "more descriptors and memory for the job");
}

bool SocketMesh::wait_for_message(int from, std::chrono::milliseconds at_most) const {
  return wait_for_events(peers_[static_cast<size_t>(from)].get(), POLLIN, Clock::now() + at_most);
}

UniqueFd SocketMesh::receive_fd(int from) const {
  Message message;
  const int socket = peers_[static_cast<size_t>(from)].get();
  if (::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) <= 0) return {};
  const cmsghdr* item = CMSG_FIRSTHDR(&message.header);
  if (item == nullptr || item->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(item), sizeof(fd));
  return UniqueFd(fd);
}

bool SocketMesh::is_closed(int rank) const {
  return comm::is_closed(peers_[static_cast<size_t>(rank)].get());
}

}  // namespace lockstep::comm
