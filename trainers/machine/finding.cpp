#include "trainers/machine/finding.h"

#include <fmt/core.h>

namespace lockstep::trainers {
namespace {

std::string_view name_of(Finding::State state) {
  switch (state) {
    case Finding::State::kOk:
      return "ok";
    case Finding::State::kNote:
      return "note";
    case Finding::State::kMissing:
      return "missing";
    case Finding::State::kBroken:
      return "broken";
  }
  return "?";
}

}  // namespace

std::string page_of(std::string_view heading, std::span<const Finding> findings) {
  std::string page = fmt::format("{}\n", heading);
  for (const Finding& finding : findings) {
    page +=
        fmt::format("  {:<7}  {:<13}  {}\n", name_of(finding.state), finding.subject, finding.text);
    if (!finding.remedy.empty()) page += fmt::format("{:26}try: {}\n", "", finding.remedy);
  }
  return page;
}

std::string start_line(const Finding& finding) {
  const bool is_note =
      finding.state == Finding::State::kOk || finding.state == Finding::State::kNote;
  return fmt::format("{}{}{}{}",
                     is_note ? "note: " : "lockstep: warning: ",
                     finding.text,
                     finding.remedy.empty() ? "" : ": ",
                     finding.remedy);
}

}  // namespace lockstep::trainers
