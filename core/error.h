// Errors that say what happened, why, and what to try.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep {

// Process exit codes; scripts rely on them.
enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,     // a broken invariant: a bug of ours
  kUsage = 2,        // flags or configuration
  kData = 3,         // data set missing, damaged or inconsistent
  kCheckpoint = 4,   // checkpoint or weight file refused
  kEnvironment = 5,  // I/O, memory, MPI or device setup
  kDiverged = 6,     // NaN, loss scale floor, replicas differ
  kStopped = 43,     // stopped on a signal, state saved
  kPeerLost = 75,    // a rank died or hangs
};

// Base of everything the engine throws on purpose. `why` and `hint` may be empty.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what, std::string why = {}, std::string hint = {});

  ExitCode code() const { return code_; }
  const std::string& why() const { return why_; }
  const std::string& hint() const { return hint_; }

 private:
  ExitCode code_;
  std::string why_;
  std::string hint_;
};

// One class per cause, so that callers and tests can tell them apart.
template <ExitCode kCode>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& what, std::string why = {}, std::string hint = {})
      : Error(kCode, what, std::move(why), std::move(hint)) {}
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

// "lockstep: error: WHAT\n  why: WHY\n  try: HINT\n"; empty parts are left out.
std::string format_error(const Error& error);

}  // namespace lockstep
