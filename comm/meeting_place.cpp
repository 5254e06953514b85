#include "comm/meeting_place.h"

#include <cstddef>
#include <span>

#include <fmt/ranges.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/words.h"

namespace lockstep::comm {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kFile = "file://";

std::string text_of(Lookup lookup, const char* name) {
  const char* text = lookup(name);
  return text == nullptr ? "" : text;
}

// Ranks on other hosts must know the ports without asking, so the ports are derived from a text
// that all ranks have. They lie below the ports that Linux gives to outgoing connections (32768 and
// up).
std::vector<uint16_t> derived_ports(std::string_view text) {
  constexpr uint64_t kFirst = 20000;
  constexpr uint64_t kCount = 12000;
  constexpr uint64_t kStep = 1543;  // a prime: busy neighbors of the first port do not matter
  constexpr uint64_t kTries = 8;
  const uint64_t begin = digest(std::as_bytes(std::span(text)));
  std::vector<uint16_t> ports;
  ports.reserve(kTries);
  for (uint64_t i = 0; i < kTries; ++i) {
    ports.push_back(static_cast<uint16_t>(kFirst + (begin % kCount + i * kStep) % kCount));
  }
  return ports;
}

std::string user_token() {
  return fmt::format("uid {}", ::geteuid());
}

std::optional<uint16_t> port_of(std::string_view text) {
  const std::optional<int64_t> port = parse_int(text);
  if (!port || *port < 0 || *port > 65535) return std::nullopt;
  return static_cast<uint16_t>(*port);
}

MeetingPlace place_at(const std::string& host, uint16_t port) {
  if (port != 0) return {.file = {}, .host = host, .ports = {port}, .token = {}};
  const std::string token = user_token();
  return {.file = {}, .host = host, .ports = derived_ports(token), .token = token};
}

// 0 where the variable is not set.
uint16_t port_variable(Lookup lookup, const char* name) {
  const std::string text = text_of(lookup, name);
  if (text.empty()) return 0;
  if (const std::optional<uint16_t> port = port_of(text)) return *port;
  throw EnvironmentError(fmt::format("the variable {} makes no sense", name),
                         fmt::format("got \"{}\", expected a port, 0 to 65535", printable(text)),
                         fmt::format("set {} to a free port of rank 0's host", name));
}

}  // namespace

MeetingPlace parse_meeting_url(std::string_view url) {
  const auto refuse = [&](const std::string& why) {
    return UsageError(fmt::format("{} is not a place where ranks can meet", printable(url)),
                      why,
                      "tcp://HOST:PORT with a free port of rank 0's host, or file://PATH in a "
                      "folder that all ranks see");
  };
  if (url.starts_with(kFile)) {
    const std::string path(url.substr(kFile.size()));
    if (path.empty()) throw refuse("it names no file");
    return {.file = path, .host = {}, .ports = {}, .token = {}};
  }
  if (!url.starts_with(kTcp)) throw refuse("it begins with neither tcp:// nor file://");
  const std::string_view rest = url.substr(kTcp.size());
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) throw refuse("it has no HOST:PORT");
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::optional<uint16_t> port = port_of(rest.substr(colon + 1));
  if (!port) {
    throw refuse(
        fmt::format("\"{}\" is not a port, 0 to 65535", printable(rest.substr(colon + 1))));
  }
  return place_at(std::string(host), *port);
}

MeetingPlace environment_place(Lookup lookup) {
  std::string host = text_of(lookup, "MASTER_ADDR");
  if (host.empty()) host = "127.0.0.1";
  MeetingPlace place = place_at(host, port_variable(lookup, "MASTER_PORT"));
  const std::string run_id = text_of(lookup, "TORCHELASTIC_RUN_ID");
  if (run_id.empty()) return place;
  place.token = fmt::format("torchrun {} {} {}", run_id, host, text_of(lookup, "MASTER_PORT"));
  if (text_of(lookup, "TORCHELASTIC_USE_AGENT_STORE") == "True") {
    place.ports = derived_ports(place.token);
  }
  return place;
}

std::optional<MeetingPlace> slurm_place(Lookup lookup) {
  std::string host = text_of(lookup, "MASTER_ADDR");
  if (host.empty()) host = first_host(text_of(lookup, "SLURM_STEP_NODELIST"));
  const std::string job = text_of(lookup, "SLURM_JOB_ID");
  if (host.empty() || job.empty()) return std::nullopt;
  const uint16_t port = port_variable(lookup, "MASTER_PORT");
  MeetingPlace place = {.file = {}, .host = host, .ports = {port}, .token = {}};
  place.token = fmt::format("slurm {}.{} {}", job, text_of(lookup, "SLURM_STEP_ID"), user_token());
  if (port == 0) place.ports = derived_ports(place.token);
  return place;
}

std::string first_host(std::string_view slurm_list) {
  std::string name;
  while (!slurm_list.empty() && slurm_list[0] != ',') {
    if (slurm_list[0] != '[') {
      name += slurm_list[0];
      slurm_list.remove_prefix(1);
      continue;
    }
    const size_t end = slurm_list.find(']');
    if (end == std::string_view::npos) return {};
    const std::string_view numbers = slurm_list.substr(1, end - 1);
    name += numbers.substr(0, numbers.find_first_of(",-"));
    slurm_list.remove_prefix(end + 1);
  }
  return name;
}

std::string to_string(const MeetingPlace& place) {
  if (!place.file.empty()) return fmt::format("the file {}", printable(place.file));
  const std::string host = printable(place.host);
  if (place.ports.size() == 1) return fmt::format("{}:{}", host, place.ports[0]);
  return fmt::format("{}, ports {}", host, fmt::join(place.ports, " "));
}

}  // namespace lockstep::comm
