#include "trainers/flight/read_flight.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "core/errno_text.h"
#include "core/error.h"
#include "core/unique_fd.h"
#include "core/words.h"
#include "engine/observe/flight_files.h"
#include "engine/observe/rank_process.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxRanks = 4096;
constexpr int64_t kMaxTime = int64_t{1} << 61;  // sums and differences of two do not overflow

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw DataError(fmt::format("{} is not a flight record", printable(file)),
                  why,
                  "a run directory of this version of Lockstep");
}

bool is_sound(const FlightEvent& event) {
  return event.sequence > 0 && event.sequence < uint64_t{1} << 62 && event.time_ns >= 0 &&
         event.time_ns < kMaxTime && event.number >= -1 && event.step >= 0 &&
         event.kind > FlightEvent::Kind::kNone && event.kind <= FlightEvent::Kind::kEnd &&
         event.phase <= FlightEvent::Phase::kLeft;
}

// Returns an empty event in place of one that is out of range.
void clear_unsound(FlightEvent& event) {
  if (!is_sound(event)) event.sequence = 0;
}

template <class Take>
void for_each_slot(FlightState& state, Take&& take) {
  for (FlightEvent& part : state.parts) take(part);
  for (FlightEvent* slot :
       {&state.layer, &state.open_call, &state.wait, &state.last_call, &state.end}) {
    take(*slot);
  }
  for (auto& lane : state.loads) {
    for (FlightEvent& load : lane) take(load);
  }
}

// Bytes that change between two reads belong to events that are being written; these count as no
// events.
void clear_unsteady(std::span<std::byte> first, std::span<const std::byte> second) {
  for (size_t at = sizeof(FlightHeader); at < first.size(); at += sizeof(FlightEvent)) {
    if (std::memcmp(&first[at], &second[at], sizeof(FlightEvent)) == 0) continue;
    std::memset(&first[at], 0, sizeof(FlightEvent));
  }
}

int64_t steady_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

RankFlight read_file(const fs::path& path) {
  const std::string file = path.string();
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) refuse(file, errno_text());
  struct stat info{};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) refuse(file, "it is not a file");
  if (info.st_size != off_t{sizeof(FlightRecord)}) {
    refuse(file, fmt::format("it has {} bytes, expected {}", info.st_size, sizeof(FlightRecord)));
  }
  std::vector<std::byte> bytes(sizeof(FlightRecord));
  std::vector<std::byte> again(sizeof(FlightRecord));
  if (read_at(fd, 0, bytes) != bytes.size() || read_at(fd, 0, again) != again.size()) {
    refuse(file, "it cannot be read");
  }
  clear_unsteady(bytes, again);
  RankFlight flight = flight_of(bytes, file);
  if (flight.header.copied_ns != 0) return flight;
  const bool is_here = flight.header.host == host_of_processes();
  flight.process = process_of(fd.get(), is_here ? flight.header.pid : 0);
  if (is_here) flight.seen_ns = steady_now();
  return flight;
}

// The number in "rank-12".
std::optional<int> rank_of(const std::string& name) {
  constexpr std::string_view kBegin = "rank-";
  if (!name.starts_with(kBegin)) return std::nullopt;
  const auto rank = parse_int(std::string_view(name).substr(kBegin.size()));
  if (!rank || *rank < 0 || *rank >= kMaxRanks || name != flight_file_of(static_cast<int>(*rank))) {
    return std::nullopt;
  }
  return static_cast<int>(*rank);
}

// The offset from another host's clock to the first record's.
void move_clock(const FlightHeader& to, RankFlight& flight) {
  if (flight.header.host == to.host) return;
  const int64_t shift = flight.header.wall_minus_steady_ns - to.wall_minus_steady_ns;
  const auto move = [&](FlightEvent& event) {
    event.time_ns = std::max<int64_t>(0, event.time_ns + shift);
  };
  for_each_slot(flight.state, move);
  std::ranges::for_each(flight.events, move);
  if (flight.seen_ns != 0) flight.seen_ns = std::max<int64_t>(0, flight.seen_ns + shift);
}

}  // namespace

RankFlight flight_of(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() != sizeof(FlightRecord)) {
    refuse(file, fmt::format("it has {} bytes, expected {}", bytes.size(), sizeof(FlightRecord)));
  }
  FlightRecord record;
  std::memcpy(&record, bytes.data(), sizeof(record));
  const FlightHeader& header = record.header;
  if (header.magic != FlightHeader::kMagic) refuse(file, "its first bytes are wrong");
  if (header.format != FlightHeader::kFormat) {
    refuse(file,
           fmt::format("its format is {}, expected {}", header.format, FlightHeader::kFormat));
  }
  if (header.ranks < 1 || header.ranks > kMaxRanks || header.rank < 0 ||
      header.rank >= header.ranks || header.pid < 0 || header.copied_ns < 0 ||
      header.copied_ns >= kMaxTime || header.wall_minus_steady_ns <= -kMaxTime ||
      header.wall_minus_steady_ns >= kMaxTime) {
    refuse(file, "its header is out of range");
  }
  RankFlight flight{.header = header, .state = record.state, .events = {}};
  flight.process =
      header.process >= '-' && header.process <= 'z' ? header.process : kProcessUnknown;
  flight.seen_ns = header.copied_ns;
  for_each_slot(flight.state, clear_unsound);
  for (const FlightEvent& event : record.events) {
    if (is_sound(event)) flight.events.push_back(event);
  }
  std::ranges::sort(flight.events, {}, &FlightEvent::sequence);
  return flight;
}

RunFlight read_flights(const fs::path& run) {
  const fs::path folder = run / kFlightFolder;
  std::vector<int> ranks;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    if (const auto rank = rank_of(file->path().filename().string())) ranks.push_back(*rank);
  }
  if (ranks.empty()) {
    throw DataError(fmt::format("there are no flight records in {}", printable(run.string())),
                    error ? error.message() : "its ranks left none",
                    "a run directory, such as runs/latest");
  }
  std::ranges::sort(ranks);
  RunFlight all;
  for (const int rank : ranks) {
    try {
      RankFlight flight = read_file(folder / flight_file_of(rank));
      if (flight.rank() != rank) refuse(flight_file_of(rank), "it is another rank's");
      all.ranks = std::max(all.ranks, flight.header.ranks);
      if (!all.flights.empty()) move_clock(all.flights.front().header, flight);
      all.flights.push_back(std::move(flight));
    } catch (const DataError& problem) {
      all.problems.push_back(fmt::format("rank {}: {}", rank, problem.why()));
    }
  }
  all.ranks = std::max(all.ranks, ranks.back() + 1);
  return all;
}

}  // namespace lockstep::trainers
