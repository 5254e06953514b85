// Keeps the ranks' flight records where they outlive the ranks.
#pragma once

#include <optional>
#include <string>

#include "core/communicator.h"
#include "core/error.h"
#include "core/flight_recorder.h"
#include "core/folder.h"
#include "core/unique_fd.h"

namespace lockstep::trainers {

std::string flight_file_of(int rank);  // "rank-0", in kFlightFolder

// While a rank runs, its record lies in a file in the memory of its host, which no disk can hold
// up, and a link in the run directory leads there. At the rank's end its record takes the link's
// place; and a rank that fails writes the records of all ranks of its host, which may be unable to.
// Where all ranks are killed, the memory files stay for a day. One a rank. Thread safety: none.
class FlightFiles {
 public:
  // Borrows the recorder, which is null on all ranks or on none. Then nothing is kept.
  explicit FlightFiles(FlightRecorder* recorder) : recorder_(recorder) {}

  // A collective call; rank 0 alone has a run directory. Records of an earlier run there are
  // removed, without a recorder too. Returns on rank 0 which ranks keep no record, or that earlier
  // ones stay, and why; else "".
  std::string open(Communicator& ranks, const Folder* run);

  // The rank ends.
  void end(ExitCode code);
  void fail(const Error& error);

  // The run directory as it is called; empty before open().
  const std::string& run() const { return run_; }

 private:
  // Returns what prevents it.
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

}  // namespace lockstep::trainers
