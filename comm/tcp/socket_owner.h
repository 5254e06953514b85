// Whose sockets a host's connections end in.
#pragma once

namespace lockstep::comm::tcp {

// Whether the other end of a connection is a socket of another user of this host. True also where
// this host's table of sockets lacks that end, which is gone then. False for the end on another
// host: what runs there cannot be seen.
bool belongs_to_another_user(int socket);

}  // namespace lockstep::comm::tcp
