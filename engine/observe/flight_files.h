// Keeps the ranks' flight records in files that outlive the ranks.
#pragma once

#include <optional>
#include <string>

#include "core/communicator.h"
#include "core/error.h"
#include "core/flight_recorder.h"
#include "core/folder.h"
#include "core/unique_fd.h"

namespace lockstep {

inline constexpr const char* kFlightFolder = "flight";  // in a run directory
std::string flight_file_of(int rank);                   // "rank-0", in it

// While a rank runs, its record is a file in its host's memory, so that no disk can delay it, and a
// link in the run directory points there. When the rank ends, its record replaces the link. A rank
// that fails also writes the records of the other ranks of its host, which may be unable to. If all
// ranks are killed, the memory files stay for a day. Each rank has one. Thread safety: none.
class FlightFiles {
 public:
  // Borrows the recorder, which is null on all ranks or on none; when it is null, nothing is kept.
  explicit FlightFiles(FlightRecorder* recorder) : recorder_(recorder) {}

  // A collective call; only rank 0 has a run directory. Removes the records of an earlier run
  // there, without a recorder too. Returns on rank 0 which ranks keep no record, or which earlier
  // records stay, and why; on the others "".
  std::string open(Communicator& ranks, const Folder* run);

  // The rank ends.
  void end(ExitCode code);
  void fail(const Error& error);

  // The run directory's path as given; empty before open().
  const std::string& run() const { return run_; }

 private:
  // Returns the problem where that fails, else "".
  std::string attach(const std::string& path, const std::string& id);
  std::string memory_file(int rank) const;
  void keep_own() const;
  void keep_others() const;
  void keep(const FlightRecord& record) const;

  FlightRecorder* const recorder_;
  std::string run_;
  std::string id_;                // of the run, in the names of memory files
  std::optional<Folder> folder_;  // in the run directory
  UniqueFd memory_;               // locked while the rank lives
};

}  // namespace lockstep
