#include "tests/emulation/access_check.h"
#include "tests/emulation/engine.h"

namespace lockstep::emulation {

void permit(const void*, size_t, Memory) {}
void withdraw(const void*) {}
void ignore_accesses(const void*, size_t) {}
void note_written(const void*, size_t) {}
bool watches_accesses() {
  return false;
}
void begin_grid() {}
void set_thread(unsigned, const ThreadClock*) {}
void join_lanes(ThreadClock*, unsigned) {}
std::string take_reports() {
  return {};
}
void note_atomic(const void*, unsigned, const void*) {}

}  // namespace lockstep::emulation
