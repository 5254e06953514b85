#include "trainers/config/rank_machine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string_view>
#include <thread>

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include "comm/gather.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "core/words.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

std::string shown_host;  // in place of the machine's name

// The cores that this process may use; 0: not known.
int64_t affinity_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 0;
}

}  // namespace

Device device_of(const Options& options) {
  const std::string& name = options.text("device");
  const bool is_cuda = name == "cuda" || (name == "auto" && cuda::visible_devices() > 0);
  return is_cuda ? Device::kCuda : Device::kCpu;
}

HostShare host_share(int64_t ranks_on_host) {
  HostShare host;
  host.host_cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  host.affinity_cores = host.host_cores;
  if (const int64_t cores = affinity_cores(); cores > 0) host.affinity_cores = cores;
  host.ranks_on_host = ranks_on_host;
  return host;
}

int64_t threads_per_rank(const std::optional<int64_t>& asked,
                         const char* omp_threads,
                         const HostShare& host) {
  if (asked) return *asked;
  if (omp_threads != nullptr && *omp_threads != '\0') {
    const std::string_view outermost = split_words(omp_threads, ',').front();
    const auto threads = parse_int(outermost);
    if (!threads || *threads < 1 || *threads > kMaxThreads) {
      throw UsageError(
          fmt::format("bad value: OMP_NUM_THREADS={}", omp_threads),
          fmt::format("it sets the threads per rank, a whole number from 1 to {}", kMaxThreads),
          "unset OMP_NUM_THREADS, or --threads N");
    }
    return *threads;
  }
  return std::max<int64_t>(1, std::min(host.affinity_cores, host.host_cores / host.ranks_on_host));
}

int64_t agreed_threads(const std::optional<int64_t>& asked,
                       const comm::Launch& launch,
                       Communicator& ranks) {
  const char* omp_threads =
      std::getenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  const int64_t mine = threads_per_rank(asked, omp_threads, host_share(launch.local_size));
  return std::ranges::min(comm::gather_value(ranks, mine));
}

bool may_spin(const comm::Launch& launch, int64_t threads) {
  return threads * launch.local_size <= usable_cores();
}

RankPlace this_place() {
  if (!shown_host.empty()) return {.host = shown_host, .pid = getpid()};
  std::array<char, 256> name{};
  const bool known = gethostname(name.data(), name.size() - 1) == 0;
  return {.host = known ? name.data() : "unknown",
          .pid = getpid(),
          .device = {},
          .cores = affinity_cores()};
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

std::vector<std::string> host_lines(std::span<const RankPlace> places) {
  std::vector<std::string> lines;
  std::map<std::string_view, size_t> line_of;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const RankPlace& place = places[rank];
    const auto [found, is_new] = line_of.try_emplace(place.host, lines.size());
    if (is_new) lines.push_back(fmt::format("ranks on {}:", printable(place.host)));
    lines[found->second] += fmt::format(
        "{} {} (local {}, {})", is_new ? "" : ",", rank, place.local_rank, printable(place.device));
  }
  return lines;
}

std::vector<std::string> rank_table(std::span<const RankPlace> places) {
  std::vector<std::string> lines = {"rank  local rank  device       pid  host"};
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const RankPlace& place = places[rank];
    lines.push_back(fmt::format("{:4}  {:10}  {:6}  {:8}  {}",
                                rank,
                                place.local_rank,
                                printable(place.device),
                                place.pid,
                                printable(place.host)));
  }
  return lines;
}

}  // namespace lockstep::trainers
