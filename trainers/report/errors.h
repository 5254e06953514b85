// Reports errors: their text, their exit code, and what the other ranks do.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "core/communicator.h"
#include "core/error.h"
#include "core/function_ref.h"

namespace lockstep::trainers {

enum class ErrorScope : uint8_t {
  kEveryRank,  // all ranks fail alike (usage, missing data): rank 0 prints for them
  kThisRank,   // this rank prints, with its number, which CommErrors hold already
};

// Returns an error about ranks that did not meet, with the flag that lets them wait longer.
Error with_meeting_advice(const Error& error);

// Converts an exception to an Error: out of memory becomes an EnvironmentError, and an unknown
// exception an InternalError.
Error as_error(const std::exception& error);

// From now on, errors name this rank. Until then they name the launcher's number.
void report_as_rank(int rank);

// --json: if wanted, rank 0 also prints the error that ends the run as JSON on standard output,
// once. Not wanted before this is called, nor after a run has printed its summary.
void enable_error_summary(bool wanted);
// From now on, the summary of an error names this run directory. Call it before threads start.
void name_run_directory(const std::string& path);

// Prints an Error's three lines to stderr; returns the process exit code. Any other exception is
// reported as a bug. May be called before MPI_Init.
int report_error(const std::exception& error, ErrorScope scope = ErrorScope::kEveryRank);

// Returns the exit code at a program's end: `code`, or that of an EnvironmentError, which is
// reported, where the output could not be written. A reader that has closed its pipe is no error.
int end_output(int code);

// From now on, an error that cannot be thrown, such as a lack of memory in a library's destructor,
// is reported as the rank's own and ends the process with its exit code.
void report_uncaught_errors();

// Reports an error that names its rank, as comm::set_error_report() wants it.
void report_lost_peer(const Error& error);

// Reports an error from before the ranks meet; only rank 0 prints it. The other ranks return a
// second later: mpirun ends all ranks when one fails, and rank 0 must have printed by then.
int report_early_error(const std::exception& error);

// Reports the error of a rank in a run and ends its process. Where all ranks fail alike, rank 0
// prints, and the others leave after it; a rank that fails alone prints with its number. The rank
// that prints adds `last_words`, lines that may be empty.
[[noreturn]] void fail_rank(Communicator& ranks,
                            const std::exception& error,
                            const std::string& last_words = {});

// Gathers the ranks' processes: ranks of this host that are stopped by a signal are then not waited
// for as those with a slow disk are. A collective call.
void watch_processes(Communicator& ranks);

// Runs `body` on every rank and returns when it succeeded on all of them. Otherwise the lowest rank
// that failed reports its error, and every rank leaves with that error's exit code. `body` may take
// long: the ranks that wait print what for, as in "rank 2 is still opening the data".
void run_or_end_all_ranks(Communicator& ranks,
                          FunctionRef<void()> body,
                          std::string_view doing = "getting ready");
// Runs `body` on rank 0. The others print what they wait for: they must not mistake a slow disk for
// a lost rank.
void on_rank_0(Communicator& ranks, std::string_view doing, FunctionRef<void()> body);

// From now on, trainer_advice(Remedy::kSmallerBatch) names a batch that should fit; 0: none is
// known. Call it before threads start.
void suggest_batch(int64_t images);

// Express a remedy of the library's errors in flags of a program, for set_remedy_text(). Empty
// where the program has no flag for it.
std::string_view trainer_advice(Remedy remedy);  // train_convnet, train_resnet
std::string_view tool_advice(Remedy remedy);     // lockstep; a replay takes its run's flags

}  // namespace lockstep::trainers
