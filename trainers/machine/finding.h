// Formats findings about a machine, for `lockstep doctor` and for the start of a run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::trainers {

struct Finding {
  enum class State : uint8_t {
    kOk,
    kNote,     // it works, and could be better
    kMissing,  // something slower replaces it
    kBroken,   // code that needs it fails
  };
  std::string subject;  // "cuDNN"
  State state = State::kOk;
  std::string text;
  std::string remedy = {};  // what to type; may be empty
};

// Returns a heading and a line or two for each finding: state, subject and text, then what to type.
std::string page_of(std::string_view heading, std::span<const Finding> findings);

// For the start of a run: "note: TEXT: REMEDY", or "lockstep: warning: ..." where something is
// missing or broken.
std::string start_line(const Finding& finding);

}  // namespace lockstep::trainers
