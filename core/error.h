// Errors that say what happened, why, and what to try.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#pragma GCC visibility push(default)
namespace lockstep {

// Process exit codes; scripts rely on them.
enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,     // a broken invariant: a bug in Lockstep
  kUsage = 2,        // flags or configuration
  kData = 3,         // data set missing, damaged or inconsistent
  kCheckpoint = 4,   // checkpoint or weight file rejected
  kEnvironment = 5,  // I/O, memory, MPI or device setup
  kDiverged = 6,     // infinite or NaN loss, too many skipped steps in a row, replicas differ
  kStopped = 43,     // stopped on a signal, state saved
  kPeerLost = 75,    // a rank died or hangs
};

// A choice that would avoid an error and that a program leaves to its users. The library has no
// flags: the program supplies the text that tells its users how to make the choice.
enum class Remedy : uint8_t {
  kNone,
  kCpu,            // compute on the CPU
  kCuda,           // compute on a GPU
  kSmallerBatch,   // fewer images or values at a time
  kEnginesByRule,  // choose cuDNN's engines by a fixed rule, not by measured time
  kPlanFile,       // another file with cuDNN's engine choices
  kMpi,            // ranks that communicate through MPI
  kHostExchange,   // gradients that travel through the host
  kIpcExchange,    // gradients that travel over CUDA IPC, or through the host
  kAlgorithm,      // another algorithm that sums gradients
  kLongerWait,     // a longer deadline for ranks that do not answer
  kUnusedZero,     // parameters without a gradient count as zero
  kDigits,         // another folder, or the digits that are built in
  kShapes,         // another folder, or the shapes that are built in
  kDataset,        // another folder, or the name of the data set in it
  kSmallerRate,    // a smaller learning rate, or clipped gradients
  kNetwork,        // another network
  kClassNames,     // a list of what the network's outputs stand for
};
inline constexpr Remedy kLastRemedy = Remedy::kClassNames;

// Base of all exceptions that the engine throws. `why` and `hint` may be empty.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code,
        const std::string& what,
        std::string why = {},
        std::string hint = {},
        Remedy remedy = Remedy::kNone);

  ExitCode code() const { return code_; }
  const std::string& why() const { return why_; }
  const std::string& hint() const { return hint_; }  // in terms of the library
  Remedy remedy() const { return remedy_; }

 private:
  ExitCode code_;
  std::string why_;
  std::string hint_;
  Remedy remedy_;
};

// One class per cause, so that callers and tests can tell them apart.
template <ExitCode kCode>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& what,
                   std::string why = {},
                   std::string hint = {},
                   Remedy remedy = Remedy::kNone)
      : Error(kCode, what, std::move(why), std::move(hint), remedy) {}
};
using UsageError = ErrorOf<ExitCode::kUsage>;
using DataError = ErrorOf<ExitCode::kData>;
using CheckpointError = ErrorOf<ExitCode::kCheckpoint>;
using EnvironmentError = ErrorOf<ExitCode::kEnvironment>;
using DivergedError = ErrorOf<ExitCode::kDiverged>;
using CommError = ErrorOf<ExitCode::kPeerLost>;

class InternalError : public ErrorOf<ExitCode::kInternal> {
  using ErrorOf::ErrorOf;
};
class ShapeError : public InternalError {
  using InternalError::InternalError;
};
class DtypeError : public InternalError {
  using InternalError::InternalError;
};
class DeviceError : public InternalError {
  using InternalError::InternalError;
};

// Returns what a program's users write to choose a remedy: "or --device cpu". Empty when the
// program does not offer that choice.
using RemedyText = std::string_view (*)(Remedy remedy);

// Sets this process's texts for remedies; until then there are none. Call it before threads start.
void set_remedy_text(RemedyText text);

// Says what to try: the hint and the program's text for the remedy, either of which may be empty.
std::string advice_of(const Error& error);

// "lockstep: error: WHAT\n  why: WHY\n  try: ADVICE\n"; empty parts are left out.
std::string format_error(const Error& error);

}  // namespace lockstep
#pragma GCC visibility pop
