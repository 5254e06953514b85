// Checks that all ranks run the same thing before any of them computes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/communicator.h"

namespace lockstep::comm {

// Something that must be the same on all ranks. Neither text holds NUL.
struct HandshakeField {
  enum class Kind : uint8_t {
    kArgument,     // what the user asked for; a difference is a UsageError
    kEnvironment,  // program, libraries, machine, data; a difference is an EnvironmentError
  };

  Kind kind = Kind::kArgument;
  std::string name;
  std::string value;
};

// Compares the fields of all ranks, in order. Errors: of the first field that differs, naming ranks
// and values; thrown on every rank, alike, so that rank 0 can print it for all.
void handshake(Communicator& peers, std::span<const HandshakeField> fields);

}  // namespace lockstep::comm
