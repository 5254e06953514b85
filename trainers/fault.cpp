#include "trainers/fault.h"

#include <limits>
#include <regex>

#include <signal.h>

namespace lockstep::trainers {

std::optional<Fault> parse_fault(const std::string& text) {
  if (text.empty()) return std::nullopt;
  static const std::regex pattern(R"((flipbit|kill|stop|nan):rank=(\d{1,4}),step=(\d{1,9}))");
  std::smatch match;
  if (!std::regex_match(text, match, pattern)) {
    throw UsageError(fmt::format("LOCKSTEP_FAULT is '{}'", text),
                     "it takes flipbit, kill, stop or nan, a rank and a step",
                     "LOCKSTEP_FAULT=flipbit:rank=1,step=30, or unset it");
  }
  return Fault{match[1], std::stoi(match[2]), std::stoll(match[3])};
}

void inject(const std::optional<Fault>& fault, int rank, int64_t step, nn::Module& model) {
  if (!fault || fault->rank != rank || fault->step != step) return;
  fmt::print(stderr, "LOCKSTEP_FAULT: {} on rank {} after step {}\n", fault->kind, rank, step);
  if (fault->kind == "kill") raise(SIGKILL);
  if (fault->kind == "stop") raise(SIGSTOP);
  Tensor first = model.parameters().front().value();
  if (fault->kind == "flipbit") *first.bytes() ^= std::byte{1};
  if (fault->kind == "nan") *first.data<float>() = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace lockstep::trainers
