#include "trainers/report/agree.h"

#include <algorithm>
#include <exception>
#include <span>
#include <vector>

#include "comm/die.h"
#include "comm/gather.h"
#include "trainers/report/report_error.h"

namespace lockstep::trainers {
namespace {

ExitCode code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.code();
  } catch (...) {
    return ExitCode::kInternal;
  }
}

void report(const std::exception_ptr& error, ErrorScope scope) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    report_error(known, scope);
  }
}

}  // namespace

void on_all_ranks(Communicator& ranks, FunctionRef<void()> body) {
  std::exception_ptr error;
  try {
    body();
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  const int64_t mine = error ? static_cast<int64_t>(code_of(error)) : 0;
  const std::vector<int64_t> codes = comm::gather_value(ranks, mine);
  const auto failed = std::ranges::find_if(codes, [](int64_t code) { return code != 0; });
  if (failed == codes.end()) return;
  const bool alike = std::ranges::find(codes, 0) == codes.end();
  if (failed - codes.begin() == ranks.rank()) {
    report(error, alike ? ErrorScope::kEveryRank : ErrorScope::kThisRank);
  }
  ranks.barrier();  // the message is out before mpirun ends the others
  comm::die(static_cast<ExitCode>(*failed));
}

std::string broadcast_text(Communicator& ranks, const std::string& text) {
  int64_t size = std::ssize(text);
  ranks.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  std::string copy = text;
  copy.resize(static_cast<size_t>(size));
  ranks.broadcast(std::as_writable_bytes(std::span(copy)), 0);
  return copy;
}

}  // namespace lockstep::trainers
