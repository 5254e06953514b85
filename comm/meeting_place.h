// Where ranks meet without MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"

#pragma GCC visibility push(default)
namespace lockstep::comm {

// Gives the value of an environment variable, or null, as getenv does.
using Lookup = FunctionRef<const char*(const char* name)>;

// Rank 0 listens at an address, or leaves its address in a file that the others read.
struct MeetingPlace {
  std::string file;                  // empty: there is an address
  std::string host;                  // rank 0's, by name or number
  std::vector<uint16_t> ports = {};  // rank 0 takes the first free one, the others try all
  std::string token;                 // the same on all ranks of a job and on no others; may be ""
};

// "tcp://HOST:PORT" or "file://PATH". Port 0 stands for several ports that are derived from the
// user's id. Errors: UsageError for other text.
MeetingPlace parse_meeting_url(std::string_view url);

// Reads MASTER_ADDR and MASTER_PORT; they default to this host and port 0. Where torchrun's own
// agent listens on MASTER_PORT, the ports are derived from the job's id. Errors: EnvironmentError
// for an invalid port.
MeetingPlace environment_place(Lookup lookup);

// The first host of the job step and ports derived from its id, or MASTER_ADDR and MASTER_PORT
// where a batch script sets them. Nothing where Slurm does not name the hosts.
std::optional<MeetingPlace> slurm_place(Lookup lookup);

// Returns "node03" for "node[03-07,12],login1".
std::string first_host(std::string_view slurm_list);

std::string to_string(const MeetingPlace& place);  // "10.0.0.7:29500", "the file /tmp/meet"

}  // namespace lockstep::comm
#pragma GCC visibility pop
