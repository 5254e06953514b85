#include "comm/random_number.h"

#include <sys/random.h>

#include "core/errno_text.h"
#include "core/error.h"

namespace lockstep::comm {

uint64_t random_number() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    throw EnvironmentError("getrandom failed", errno_text());
  }
  return number;
}

}  // namespace lockstep::comm
