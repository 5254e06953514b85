// The error of an image that a training can do without.
#pragma once

#include <string>

#include "core/error.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// A file whose image cannot be decoded: it is damaged, of another format, or beyond the limits. A
// data set's read() may throw it too: the loader then takes the next image and a warning says so.
class UnreadableImage : public DataError {
 public:
  // `why` says what is wrong with the file, without its name.
  explicit UnreadableImage(const std::string& why)
      : DataError("an image cannot be read", why, "remove the file or repair it") {}
};

}  // namespace lockstep::data
#pragma GCC visibility pop
