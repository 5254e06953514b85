#include "trainers/report/errors.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "comm/die.h"
#include "comm/gather.h"
#include "comm/launch.h"
#include "core/errno_text.h"
#include "core/flight_recorder.h"
#include "core/memory_limit.h"
#include "core/words.h"
#include "engine/observe/rank_process.h"
#include "trainers/report/print.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {
namespace {

std::optional<int> known_rank;
std::atomic<bool> summary_wanted = false;
std::string run_directory;  // empty: there is none yet

struct RankProcess {
  uint64_t host = 0;  // host_of_processes()
  int64_t pid = 0;
};
std::vector<RankProcess> processes;  // by rank; empty: not known

constexpr const char* kLessMemory =
    "a smaller batch, fewer threads or loader workers, or higher limits (ulimit -v, ulimit -u)";

std::string& batch_advice() {
  static std::string text = "-b sets the batch";
  return text;
}

// MPI_Init may not have happened yet, or may be what failed.
int rank_of_this_process() {
  if (known_rank) return *known_rank;
  try {
    return comm::read_launch().rank;
  } catch (const Error&) {
    return 0;
  }
}

EnvironmentError output_error(const std::string& why) {
  return EnvironmentError("what was printed could not be written",
                          why,
                          "more space where standard output goes, or another file");
}

bool is_disk_error(const std::error_code& code) {
  constexpr std::errc kCodes[] = {
      std::errc::no_space_on_device, std::errc::file_too_large, std::errc::io_error};
  return std::ranges::any_of(kCodes, [&](std::errc known) { return code == known; });
}

}  // namespace

Error as_error(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return *ours;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return EnvironmentError("out of memory", memory_text(), kLessMemory);
  }
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return EnvironmentError(
        "cannot start a thread", fmt::format("{}; {}", error.what(), memory_text()), kLessMemory);
  }
  if (system != nullptr && is_disk_error(system->code())) {
    return output_error(error.what());
  }
  return InternalError(error.what(),
                       "an exception that Lockstep does not throw itself",
                       "please report this with the command line: it is a bug in Lockstep");
}

namespace {

// False if it still runs after two seconds, or if the transport cannot tell.
bool rank0_has_ended(Communicator& ranks) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < limit) {
    const std::vector<int> gone = ranks.gone();
    if (std::ranges::find(gone, 0) != gone.end()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

void print_summary(const std::string& summary) {
  if (!summary_wanted.exchange(false)) return;
  print(stdout, summary);
}

// Prints the three lines if this rank is to print them.
void print_error(const Error& error, bool names_its_rank, ErrorScope scope) {
  const int rank = rank_of_this_process();
  if (scope == ErrorScope::kThisRank && !names_its_rank) {
    const Error named(error.code(),
                      fmt::format("rank {}: {}", rank, error.what()),
                      error.why(),
                      error.hint(),
                      error.remedy());
    print(stderr, painted(stderr, format_error(named)));
  } else if (scope == ErrorScope::kThisRank || rank == 0) {
    print(stderr, painted(stderr, format_error(error)));
  }
}

bool is_lost_peer_error(const std::exception& error) {
  return dynamic_cast<const CommError*>(&error) != nullptr;  // it names its rank
}

bool is_stopped(int rank) {
  if (static_cast<size_t>(rank) >= processes.size()) return false;
  const RankProcess& process = processes[static_cast<size_t>(rank)];
  return process.host == host_of_processes() && letter_of(process.pid) == kProcessStopped;
}

// While this lives, the ranks are in a part that may take long.
class SlowPartOf {
 public:
  SlowPartOf(Communicator& ranks, std::string_view doing)
      : ranks_(ranks),
        part_{.doing = doing,
              .limit = std::chrono::minutes(10),
              .tell = note,
              .is_stopped = is_stopped} {
    ranks_.enter(&part_);
    if (ranks_.recorder() != nullptr) ranks_.recorder()->enter_part(doing, -1);
  }
  SlowPartOf(const SlowPartOf&) = delete;
  SlowPartOf& operator=(const SlowPartOf&) = delete;
  ~SlowPartOf() {
    ranks_.enter(nullptr);
    if (ranks_.recorder() == nullptr || std::uncaught_exceptions() > 0) return;
    ranks_.recorder()->leave_part();
  }

 private:
  static void note(const std::string& text) { print_line(stderr, "note: " + text); }

  Communicator& ranks_;
  const SlowPart part_;
};

// Remedies that are not listed have no flag.
constexpr std::pair<Remedy, std::string_view> kTrainerAdvice[] = {
    {Remedy::kCpu, "or --device cpu"},
    {Remedy::kCuda, "or --device cuda"},
    {Remedy::kEnginesByRule, "training without --autotune goes by rule"},
    {Remedy::kPlanFile, "--plan-file names another, --autotune makes one"},
    {Remedy::kMpi, "--transport auto chooses by itself"},
    {Remedy::kHostExchange, "or --transport shm or mpi"},
    {Remedy::kIpcExchange, "or --transport ipc, shm or mpi"},
    {Remedy::kAlgorithm, "--algorithm names it"},
    {Remedy::kLongerWait, "--stall-abort SECONDS waits longer"},
    {Remedy::kUnusedZero, "--unused zero counts them as zero"},
    {Remedy::kDigits, "--data names another folder, --dataset digits is built in"},
    {Remedy::kShapes, "--data names another folder, --dataset shapes is built in"},
    {Remedy::kDataset, "--data names the folder, --dataset the data set in it"},
    {Remedy::kSmallerRate, "--lr sets the rate, --clip-grad-norm 1 clips"},
    {Remedy::kNetwork, "--arch names it"},
    {Remedy::kClassNames, "--class-names FILE has them, one a line"},
};

}  // namespace

Error with_meeting_advice(const Error& error) {
  if (error.code() != ExitCode::kPeerLost) return error;
  return {error.code(),
          error.what(),
          error.why(),
          error.hint() + "; --rendezvous-timeout SECONDS waits longer",
          error.remedy()};
}

void report_as_rank(int rank) {
  known_rank = rank;
}

void enable_error_summary(bool wanted) {
  summary_wanted = wanted;
}

void name_run_directory(const std::string& path) {
  run_directory = path;
}

int report_error(const std::exception& error, ErrorScope scope) {
  const Error reported = as_error(error);
  print_error(reported, is_lost_peer_error(error), scope);
  if (rank_of_this_process() == 0) print_summary(summary_json(reported, 0, run_directory));
  return static_cast<int>(reported.code());
}

namespace {

[[noreturn]] void end_uncaught() {
  static std::atomic<bool> begun = false;
  if (begun.exchange(true)) std::abort();  // to say it fails too
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    comm::die(static_cast<ExitCode>(report_error(error, ErrorScope::kThisRank)));
  } catch (...) {  // no exception of ours
    std::abort();
  }
  std::abort();
}

}  // namespace

int end_output(int code) {
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const int cause = output_errno() != 0 ? output_errno() : errno;
  if (written || cause == EPIPE) return code;
  const EnvironmentError error =
      output_error(cause == 0 ? "an earlier write failed" : errno_text(cause));
  print(stderr, format_error(error));
  return code == 0 ? static_cast<int>(error.code()) : code;
}

void report_uncaught_errors() {
  std::set_terminate(end_uncaught);
}

void report_lost_peer(const Error& error) {
  print_error(error, true, ErrorScope::kThisRank);
  if (rank_of_this_process() == 0) print_summary(summary_json(error, 0, run_directory));
}

int report_early_error(const std::exception& error) {
  const int code = report_error(error);
  if (rank_of_this_process() != 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  return code;
}

void fail_rank(Communicator& ranks, const std::exception& error, const std::string& last_words) {
  static std::mutex first;  // ranks that are threads may fail at once: the first one ends them all
  const std::lock_guard lock(first);
  const bool alone = is_lost_peer_error(error) ||  // each rank knows another
                     (rank_of_this_process() != 0 && !rank0_has_ended(ranks));
  const ErrorScope scope = alone ? ErrorScope::kThisRank : ErrorScope::kEveryRank;
  const int code = report_error(error, scope);
  if (alone || rank_of_this_process() == 0) print(stderr, without_controls(last_words));
  comm::die(static_cast<ExitCode>(code));
}

void watch_processes(Communicator& ranks) {
  processes = comm::gather_value(ranks, RankProcess{host_of_processes(), ::getpid()});
}

void on_rank_0(Communicator& ranks, std::string_view doing, FunctionRef<void()> body) {
  const SlowPartOf part(ranks, doing);
  if (ranks.rank() == 0) body();
  ranks.barrier();
}

void run_or_end_all_ranks(Communicator& ranks, FunctionRef<void()> body, std::string_view doing) {
  const SlowPartOf part(ranks, doing);
  std::optional<Error> error;
  bool names_its_rank = false;
  int64_t mine = 0;  // exit code
  try {
    body();
  } catch (const std::exception& known) {
    error = as_error(known);
    names_its_rank = is_lost_peer_error(known);
    mine = static_cast<int64_t>(error->code());
  }
  const std::vector<int64_t> codes = comm::gather_value(ranks, mine);
  const auto failed = std::ranges::find_if(codes, [](int64_t code) { return code != 0; });
  if (failed == codes.end()) return;
  const bool alike = std::ranges::find(codes, 0) == codes.end();
  std::string summary;
  if (error && failed - codes.begin() == ranks.rank()) {
    print_error(*error, names_its_rank, alike ? ErrorScope::kEveryRank : ErrorScope::kThisRank);
    summary = summary_json(*error, ranks.rank(), run_directory);
  }
  // The message and rank 0's summary are printed before mpirun ends the others.
  const std::vector<std::string> summaries = comm::collect_texts(ranks, summary);
  if (ranks.rank() == 0) print_summary(summaries[static_cast<size_t>(failed - codes.begin())]);
  ranks.barrier();
  comm::die(comm::failure_code(*failed));
}

void suggest_batch(int64_t images) {
  if (images < 1) return;
  batch_advice() = fmt::format(
      "-b sets the batch: {} images per rank would leave a tenth of the memory free", images);
}

std::string_view trainer_advice(Remedy remedy) {
  if (remedy == Remedy::kSmallerBatch) return batch_advice();
  const auto* const found =
      std::ranges::find(kTrainerAdvice, remedy, &std::pair<Remedy, std::string_view>::first);
  return found == std::end(kTrainerAdvice) ? std::string_view() : found->second;
}

std::string_view tool_advice(Remedy remedy) {
  if (remedy != Remedy::kPlanFile) return {};
  return "lockstep plan --plan-file names another, the trainers' --autotune makes one";
}

}  // namespace lockstep::trainers
