// Finds the state of the process that wrote a flight record.
#pragma once

#include <cstdint>

namespace lockstep::trainers {

// Identifies one boot of one host and one PID namespace: within it a process number is unambiguous
// and the steady clocks agree.
uint64_t host_of_processes();

inline constexpr char kProcessGone = '-';
inline constexpr char kProcessUnknown = '?';
inline constexpr char kProcessStopped = 'T';

// The letter of /proc/PID/stat for the process that holds the lock on the open file: "R" runs, "S"
// sleeps, "D" waits for a disk, "T" is stopped. kProcessGone where nobody holds it.
char process_of(int fd, int pid);

}  // namespace lockstep::trainers
