// Tells what became of the process that a flight record is about.
#pragma once

#include <cstdint>

namespace lockstep::trainers {

// In this place alone a number of a process means the same one, and the steady clocks agree: one
// boot of one host, and one namespace of processes.
uint64_t this_host();

inline constexpr char kProcessGone = '-';
inline constexpr char kProcessUnknown = '?';
inline constexpr char kProcessStopped = 'T';

// The letter of /proc/PID/stat for the process that holds the lock on the open file: "R" runs, "S"
// sleeps, "D" waits for a disk, "T" is stopped. kProcessGone where nobody holds it.
char process_of(int fd, int pid);

}  // namespace lockstep::trainers
