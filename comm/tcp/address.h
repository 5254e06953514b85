// Addresses of TCP and the sockets at them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "core/unique_fd.h"

namespace lockstep::comm::tcp {

using Clock = std::chrono::steady_clock;

// An IPv4 or IPv6 address and a port.
class Address {
 public:
  using Bytes = std::array<uint8_t, 16>;  // of IPv6; IPv4 is mapped into it

  Address() = default;
  Address(const sockaddr* address, socklen_t size);
  Address(const Bytes& bytes, uint16_t port);
  static Address any(int family, uint16_t port);
  // Takes host()'s text. A name gives nothing: no name service is asked.
  static std::optional<Address> of_number(const std::string& host, uint16_t port);
  static Address of_socket(int socket);  // this end
  static Address of_peer(int socket);    // the other end

  int family() const { return storage_.ss_family; }
  uint16_t port() const;
  Address with_port(uint16_t port) const { return {bytes(), port}; }
  Bytes bytes() const;
  bool is_loopback() const;
  std::string host() const;       // "10.0.0.7"
  std::string to_string() const;  // "10.0.0.7:29500"

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;

 private:
  sockaddr_storage storage_{};
};

// Empty where the name is not known; `problem` then says why.
std::vector<Address> resolve(const std::string& host, uint16_t port, std::string& problem);

// The addresses of all interfaces that are up, without loopback and link-local ones.
std::vector<Address> addresses_of_this_host();

// Returns an invalid descriptor, with errno set, where it cannot listen. Port 0 is any free port.
UniqueFd listen_at(const Address& address);
// Invalid where there is no connection before `deadline`; `problem` then says why. The socket does
// not block, and sends small messages at once.
UniqueFd connect_to(const Address& address, Clock::time_point deadline, std::string& problem);
// For a socket that accept() gave.
void prepare(int socket);

// False where the other end closed or the time is over.
bool send_all(int socket, std::span<const std::byte> bytes, Clock::time_point deadline);
bool receive_all(int socket, std::span<std::byte> bytes, Clock::time_point deadline);

// True when there is something to read before `deadline`, the end of the connection included.
bool wait_readable(int socket, Clock::time_point deadline);

}  // namespace lockstep::comm::tcp
