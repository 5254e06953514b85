#include "trainers/report/rank_place.h"

#include <array>

#include <unistd.h>

#include "comm/gather.h"

namespace lockstep::trainers {
namespace {

using HostName = std::array<char, 256>;

}  // namespace

RankPlace this_place() {
  HostName name{};
  const bool known = gethostname(name.data(), name.size() - 1) == 0;
  return {.host = known ? name.data() : "unknown", .pid = getpid()};
}

std::vector<RankPlace> gather_places(Communicator& ranks, const RankPlace& mine) {
  struct Message {
    HostName host{};
    int64_t pid = 0;
  };
  Message message{.pid = mine.pid};
  mine.host.copy(message.host.data(), message.host.size() - 1);
  const std::vector<Message> all = comm::gather_value(ranks, message);
  std::vector<RankPlace> places;
  places.reserve(all.size());
  for (const Message& each : all) places.push_back({.host = each.host.data(), .pid = each.pid});
  return places;
}

}  // namespace lockstep::trainers
