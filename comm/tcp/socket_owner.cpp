#include "comm/tcp/socket_owner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "comm/tcp/address.h"

namespace lockstep::comm::tcp {
namespace {

constexpr size_t kBytesBeforeIpv4 = 12;

// As the kernel's table shows it: each four bytes as one number of this processor.
std::string table_text(std::span<const uint8_t> bytes, uint16_t port) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    text += fmt::format("{:08X}", word);
  }
  return text + fmt::format(":{:04X}", port);
}

std::optional<uid_t> owner_in(const char* table, const std::string& ends) {
  std::ifstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(ends);
    if (at == std::string::npos) continue;
    std::istringstream fields(line.substr(at + ends.size()));
    std::string state;
    std::string queues;
    std::string timer;
    std::string retransmits;
    uid_t user = 0;
    if (fields >> state >> queues >> timer >> retransmits >> user) return user;
  }
  return std::nullopt;
}

// The user of the socket of this host whose own end is `mine`; none where there is no such socket.
std::optional<uid_t> owner_of(const Address& mine, const Address& other) {
  const auto ends = [&](size_t from) {
    const Address::Bytes a = mine.bytes();
    const Address::Bytes b = other.bytes();
    return " " + table_text(std::span(a).subspan(from), mine.port()) + " " +
           table_text(std::span(b).subspan(from), other.port()) + " ";
  };
  if (mine.family() == AF_INET) {
    const std::optional<uid_t> user = owner_in("/proc/self/net/tcp", ends(kBytesBeforeIpv4));
    if (user) return user;
  }
  return owner_in("/proc/self/net/tcp6", ends(0));
}

bool is_on_this_host(const Address& address) {
  if (address.is_loopback()) return true;
  const std::vector<Address> all = addresses_of_this_host();
  return std::ranges::any_of(all,
                             [&](const Address& each) { return each.bytes() == address.bytes(); });
}

}  // namespace

bool belongs_to_another_user(int socket) {
  const Address mine = Address::of_socket(socket);
  const Address peer = Address::of_peer(socket);
  if (!is_on_this_host(peer)) return false;
  const std::optional<uid_t> user = owner_of(peer, mine);
  if (user) return *user != ::geteuid();
  return owner_of(mine, peer).has_value();  // else there is no table, as in some sandboxes
}

}  // namespace lockstep::comm::tcp
