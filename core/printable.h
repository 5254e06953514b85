// Text from files, made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// `text` with control bytes, backslashes and bytes above 0x7e as \xNN, cut to `limit` bytes of
// input (then ending in "...").
std::string printable(std::string_view text, size_t limit = 100);

}  // namespace lockstep
