// The descriptors that every process expects to be open.
#pragma once

namespace lockstep {

// Opens /dev/null in place of those of standard input, output and error that are closed, so that no
// file of the program gets their numbers and what is printed. The first call of a program's main().
void open_standard_streams();

}  // namespace lockstep
