#include "trainers/report/rank_place.h"

#include <array>
#include <map>

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include "comm/gather.h"

namespace lockstep::trainers {
namespace {

std::string shown_host;  // in place of the machine's name

}  // namespace

RankPlace this_place() {
  if (!shown_host.empty()) return {.host = shown_host, .pid = getpid()};
  std::array<char, 256> name{};
  const bool known = gethostname(name.data(), name.size() - 1) == 0;
  RankPlace place{.host = known ? name.data() : "unknown", .pid = getpid()};
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) place.cores = CPU_COUNT(&mask);
  return place;
}

std::vector<RankPlace> gather_places(Communicator& ranks, const RankPlace& mine) {
  const std::vector<std::string> hosts = comm::gather_texts(ranks, mine.host);
  const std::vector<int64_t> pids = comm::gather_value(ranks, mine.pid);
  const std::vector<int> local_ranks = comm::gather_value(ranks, mine.local_rank);
  const std::vector<std::string> devices = comm::gather_texts(ranks, mine.device);
  const std::vector<int64_t> cores = comm::gather_value(ranks, mine.cores);
  std::vector<RankPlace> places;
  places.reserve(hosts.size());
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    places.push_back({hosts[rank], pids[rank], local_ranks[rank], devices[rank], cores[rank]});
  }
  return places;
}

void number_hosts(std::span<RankPlace> places) {
  std::map<std::string, std::string> labels;
  for (RankPlace& place : places) {
    place.host = labels.try_emplace(place.host, fmt::format("host{}", labels.size())).first->second;
  }
}

void show_host_as(const std::string& name) {
  shown_host = name;
}

}  // namespace lockstep::trainers
