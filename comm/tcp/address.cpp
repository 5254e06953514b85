#include "comm/tcp/address.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "comm/sockets.h"
#include "core/errno_text.h"

namespace lockstep::comm::tcp {
namespace {

constexpr Address::Bytes kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kMappedBytes = 12;

template <class T>
T as(const sockaddr_storage& storage) {
  T address{};
  std::memcpy(&address, &storage, sizeof(address));
  return address;
}

UniqueFd new_socket(int family) {
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t size) {
  std::memcpy(&storage_, address, std::min<size_t>(size, sizeof(storage_)));
}

Address::Address(const Bytes& bytes, uint16_t port) {
  if (std::equal(kMapped.begin(), kMapped.begin() + kMappedBytes, bytes.begin())) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    std::memcpy(&four.sin_addr, bytes.data() + kMappedBytes, sizeof(four.sin_addr));
    std::memcpy(&storage_, &four, sizeof(four));
    return;
  }
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  std::memcpy(&six.sin6_addr, bytes.data(), bytes.size());
  std::memcpy(&storage_, &six, sizeof(six));
}

Address Address::any(int family, uint16_t port) {
  return {family == AF_INET6 ? Bytes{} : kMapped, port};
}

std::optional<Address> Address::of_number(const std::string& host, uint16_t port) {
  Bytes bytes = kMapped;
  if (::inet_pton(AF_INET, host.c_str(), bytes.data() + kMappedBytes) == 1 ||
      ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) {
    return Address(bytes, port);
  }
  return std::nullopt;
}

Address Address::of_socket(int socket) {
  Address address;
  socklen_t size = sizeof(address.storage_);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage_), &size);
  return address;
}

Address Address::of_peer(int socket) {
  Address address;
  socklen_t size = sizeof(address.storage_);
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage_), &size);
  return address;
}

uint16_t Address::port() const {
  const bool is_six = family() == AF_INET6;
  return ntohs(is_six ? as<sockaddr_in6>(storage_).sin6_port : as<sockaddr_in>(storage_).sin_port);
}

Address::Bytes Address::bytes() const {
  Bytes bytes = kMapped;
  if (family() == AF_INET6) {
    const auto six = as<sockaddr_in6>(storage_);
    std::memcpy(bytes.data(), &six.sin6_addr, bytes.size());
  } else {
    const auto four = as<sockaddr_in>(storage_);
    std::memcpy(bytes.data() + kMappedBytes, &four.sin_addr, sizeof(four.sin_addr));
  }
  return bytes;
}

bool Address::is_loopback() const {
  const Bytes mine = bytes();
  const bool is_four = std::equal(kMapped.begin(), kMapped.begin() + kMappedBytes, mine.begin());
  if (is_four) return mine[kMappedBytes] == 127;
  return std::all_of(mine.begin(), mine.end() - 1, [](uint8_t byte) { return byte == 0; }) &&
         mine.back() == 1;
}

std::string Address::host() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const Bytes mine = bytes();
  const bool is_four = std::equal(kMapped.begin(), kMapped.begin() + kMappedBytes, mine.begin());
  const uint8_t* const number = is_four ? mine.data() + kMappedBytes : mine.data();
  ::inet_ntop(is_four ? AF_INET : AF_INET6, number, text.data(), text.size());
  return text.data();
}

std::string Address::to_string() const {
  const std::string number = host();
  const bool is_six = number.find(':') != std::string::npos;
  return is_six ? fmt::format("[{}]:{}", number, port()) : fmt::format("{}:{}", number, port());
}

socklen_t Address::size() const {
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::vector<Address> resolve(const std::string& host, uint16_t port, std::string& problem) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list);
  if (status != 0) {
    problem = fmt::format("the host {} is not known: {}", host, ::gai_strerror(status));
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    addresses.emplace_back(each->ai_addr, each->ai_addrlen);
  }
  return addresses;
}

std::vector<Address> addresses_of_this_host() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<Address> addresses;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const bool is_six = each->ifa_addr->sa_family == AF_INET6;
    if (!is_six && each->ifa_addr->sa_family != AF_INET) continue;
    const Address address(each->ifa_addr, is_six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    const Address::Bytes bytes = address.bytes();
    const bool is_link_local = is_six && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
    if (!address.is_loopback() && !is_link_local) addresses.push_back(address);
  }
  return addresses;
}

UniqueFd listen_at(const Address& address) {
  UniqueFd socket = new_socket(address.family());
  if (!socket.valid()) return {};
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), address.get(), address.size()) != 0) return {};
  if (::listen(socket.get(), SOMAXCONN) != 0) return {};
  return socket;
}

UniqueFd connect_to(const Address& address, Clock::time_point deadline, std::string& problem) {
  UniqueFd socket = new_socket(address.family());
  int error = socket.valid() ? 0 : errno;
  if (error == 0 && ::connect(socket.get(), address.get(), address.size()) != 0) error = errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof(error);
    if (!wait_for_events(socket.get(), POLLOUT, deadline)) {
      error = ETIMEDOUT;
    } else {
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  // Nobody listens there, and the kernel chose that very port for this end: TCP then connects a
  // socket with itself.
  if (error == 0 && Address::of_socket(socket.get()).to_string() == address.to_string()) {
    error = ECONNREFUSED;
  }
  if (error != 0) {
    problem = fmt::format("{}: {}", address.to_string(), errno_text(error));
    return {};
  }
  prepare(socket.get());
  return socket;
}

void prepare(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool send_all(int socket, std::span<const std::byte> bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for_events(socket, POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool receive_all(int socket, std::span<std::byte> bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (got < 0 && errno == EAGAIN) {
      if (!wait_for_events(socket, POLLIN, deadline)) return false;
    } else if (got == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool wait_readable(int socket, Clock::time_point deadline) {
  return wait_for_events(socket, POLLIN, deadline);
}

}  // namespace lockstep::comm::tcp
