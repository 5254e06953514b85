#include "core/error.h"

#include <utility>

#include <fmt/core.h>

#include "core/check.h"
#include "core/words.h"

namespace lockstep {

namespace {

// Global, since some errors are printed where nothing catches them.
RemedyText remedy_text = nullptr;

}  // namespace

Error::Error(
    ExitCode code, const std::string& what, std::string why, std::string hint, Remedy remedy)
    : std::runtime_error(what),
      code_(code),
      why_(std::move(why)),
      hint_(std::move(hint)),
      remedy_(remedy) {}

void set_remedy_text(RemedyText text) {
  remedy_text = text;
}

std::string advice_of(const Error& error) {
  const std::string_view text =
      remedy_text == nullptr ? std::string_view() : remedy_text(error.remedy());
  const bool both = !error.hint().empty() && !text.empty();
  return fmt::format("{}{}{}", error.hint(), both ? "; " : "", text);
}

std::string format_error(const Error& error) {
  std::string text = fmt::format("lockstep: error: {}\n", error.what());
  if (!error.why().empty()) text += fmt::format("  why: {}\n", error.why());
  const std::string advice = advice_of(error);
  if (!advice.empty()) text += fmt::format("  try: {}\n", advice);
  return without_controls(text);
}

namespace detail {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(
      message,
      fmt::format("the check `{}` failed at {}:{}", condition, file, line),
      "in a program of your own, what the header requires of this call; else please "
      "report this with the command line: it is a bug in Lockstep");
}

}  // namespace detail
}  // namespace lockstep
