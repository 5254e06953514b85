// Finds the states of processes, and of the one that wrote a flight record.
#pragma once

#include <cstdint>

namespace lockstep {

// Identifies one boot of one host and one PID namespace: within it a process number is unambiguous
// and the steady clocks agree.
uint64_t host_of_processes();

inline constexpr char kProcessGone = '-';
inline constexpr char kProcessUnknown = '?';
inline constexpr char kProcessStopped = 'T';

// The letter of /proc/PID/stat: "R" runs, "S" sleeps, "D" waits for a disk, "T" is stopped, also by
// a debugger. kProcessGone where the process is about to end.
char letter_of(int64_t pid);

// letter_of() the process that holds the lock on the open file. kProcessGone where nobody holds it.
// `pid` is 0 for a process of another host.
char process_of(int fd, int pid);

}  // namespace lockstep
