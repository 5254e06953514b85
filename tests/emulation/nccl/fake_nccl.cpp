// NCCL's functions as Lockstep calls them. They promise no more than NCCL: what a stream is given
// happens when every rank's stream has got there, and a call that is in progress may not have
// reached its stream before it has been asked for. LOCKSTEP_EMULATION_NCCL plants a fault:
//   missing, old-version, lacks-a-function   the library
//   init-fails, init-hangs                   a communicator's beginning
//   async-error:N, hangs:N                   each rank's N-th group of calls, recorded ones once
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "comm/nccl/abi.h"
#include "tests/emulation/nccl/collective.h"
#include "tests/emulation/runtime/libraries.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::comm::nccl;
using namespace lockstep::emulation;

// The program's handle.
struct ncclComm {
  std::shared_ptr<NcclCommunicator> shared;
  int polls_until_met = 0;
  bool meets = false;             // the ranks are on their way to each other
  std::function<void()> pending;  // calls that have not reached their stream
  bool asked = false;             // about `pending`
  Result error = kSuccess;        // that came on its own
  int groups = 0;
};

namespace {

struct Planted {
  std::string_view kind;
  int at = 0;
};

Planted planted() {
  const char* const text = std::getenv("LOCKSTEP_EMULATION_NCCL");
  const std::string_view all = text == nullptr ? "" : text;
  const size_t colon = all.find(':');
  if (colon == std::string_view::npos) return {all};
  return {all.substr(0, colon), std::atoi(all.substr(colon + 1).data())};
}

struct Group {
  int depth = 0;
  ncclComm* comm = nullptr;
  CUstream_st* stream = nullptr;
  std::vector<NcclCall> calls = {};
};
thread_local Group group;

Result get_version(int* version) {
  *version = planted().kind == "old-version" ? version_code(2, 17, 1) : version_code(2, 28, 9);
  return kSuccess;
}

Result get_unique_id(UniqueId* id) {
  const std::string where = World::create();
  std::snprintf(id->internal, sizeof(id->internal), "%s", where.c_str());
  return kSuccess;
}

Result comm_init_rank_config(Handle* comm, int ranks, UniqueId id, int rank, Config* config) {
  const bool sound = config->magic == 0xcafebeef && config->size == sizeof(Config) &&
                     config->version == kAbiVersion && config->blocking == 0;
  if (!sound || ranks > kMostRanks || rank >= ranks) return kInvalidArgument;
  if (planted().kind == "init-fails") return kUnhandledCudaError;
  auto made = std::make_unique<ncclComm>();
  made->shared = std::make_shared<NcclCommunicator>(rank, ranks, id.internal);
  made->meets = true;
  if (planted().kind != "init-hangs") made->shared->world.join();
  *comm = made.release();
  return kInProgress;
}

// What streams and graphs hold of it would be used after its end.
Result comm_destroy(Handle comm) {
  const std::lock_guard lock(state().mutex);
  if (comm->shared.use_count() > 1) {
    std::fputs("NCCL: a communicator ends before the work that it is part of\n", stderr);
    std::abort();
  }
  delete comm;
  return kSuccess;
}

Result comm_abort(Handle comm) {
  const std::lock_guard lock(state().mutex);
  comm->shared->aborted = true;
  delete comm;
  return kSuccess;
}

Result comm_get_async_error(Handle comm, Result* error) {
  const std::lock_guard lock(state().mutex);
  if (comm->meets) comm->meets = comm->shared->world.joined() < comm->shared->size;
  if (comm->pending && comm->asked) std::exchange(comm->pending, {})();
  comm->asked = static_cast<bool>(comm->pending);
  *error = comm->error != kSuccess                   ? comm->error
           : comm->meets || comm->pending != nullptr ? kInProgress
                                                     : kSuccess;
  return kSuccess;
}

const char* get_error_string(Result result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kUnhandledCudaError:
      return "unhandled cuda error";
    case kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "invalid usage";
  }
}

const char* get_last_error(Handle comm) {
  return comm == nullptr ? "" : "emulated";
}

Result group_start() {
  if (group.depth != 0) return kInvalidUsage;  // Lockstep does not nest them
  group = {.depth = 1};
  return kSuccess;
}

void give_to_stream(ncclComm& comm, CUstream_st* handle, std::vector<NcclCall> calls) {
  const Planted fault = planted();
  ++comm.groups;
  if (comm.groups == fault.at && fault.kind == "async-error") comm.error = kRemoteError;
  if (comm.groups == fault.at) comm.shared->hangs = true;
  CUstream_st* const stream = state().queues.find(handle);
  const auto work = std::make_shared<Collective>(comm.shared, std::move(calls));
  if (stream == nullptr) {
    comm.error = kInvalidArgument;
  } else if (give(*stream, [=] { work->run(); }, [=] { return work->ready(); }) != cudaSuccess) {
    comm.error = kUnhandledCudaError;
  }
}

Result group_end() {
  Group ended = std::exchange(group, {});
  if (ended.depth != 1) return kInvalidUsage;
  if (ended.comm == nullptr) return kSuccess;
  if (ended.comm->error != kSuccess) return ended.comm->error;
  const std::lock_guard lock(state().mutex);
  ended.comm->pending = [ended = std::move(ended)] {
    give_to_stream(*ended.comm, ended.stream, ended.calls);
  };
  return kInProgress;
}

Result add(Handle comm, CUstream_st* stream, const NcclCall& call) {
  const bool first = group.comm == nullptr;
  const bool same = first || (group.comm == comm && group.stream == stream);
  if (group.depth == 0 || !same || comm->meets || comm->pending != nullptr) return kInvalidUsage;
  const bool on_device = state().heap.place_of(call.from == nullptr ? call.to : call.from,
                                               call.bytes()) == Place::kDevice;
  if (!on_device || call.peer < 0 || call.peer >= comm->shared->size) return kInvalidArgument;
  group.comm = comm;
  group.stream = stream;
  group.calls.push_back(call);
  return kInProgress;
}

Result send(const void* from, size_t count, DataType type, int peer, Handle comm, CUstream_st* to) {
  return add(
      comm,
      to,
      {.kind = NcclCall::Kind::kSend, .from = from, .count = count, .type = type, .peer = peer});
}

Result recv(void* to, size_t count, DataType type, int peer, Handle comm, CUstream_st* stream) {
  return add(
      comm,
      stream,
      {.kind = NcclCall::Kind::kReceive, .to = to, .count = count, .type = type, .peer = peer});
}

Result broadcast(const void* from,
                 void* to,
                 size_t count,
                 DataType type,
                 int root,
                 Handle comm,
                 CUstream_st* stream) {
  if (from != to) return kInvalidArgument;  // Lockstep's are in place
  return add(comm,
             stream,
             {.kind = NcclCall::Kind::kBroadcast,
              .from = from,
              .to = to,
              .count = count,
              .type = type,
              .peer = root});
}

Result all_reduce(const void* from,
                  void* to,
                  size_t count,
                  DataType type,
                  Reduction,
                  Handle comm,
                  CUstream_st* stream) {
  return add(
      comm,
      stream,
      {.kind = NcclCall::Kind::kAllReduce, .from = from, .to = to, .count = count, .type = type});
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* symbol(const char* wanted) {
  const std::string_view name = wanted;
  if (name == "ncclSend" && planted().kind == "lacks-a-function") return nullptr;
  if (name == "ncclGetVersion") return address<GetVersionFunction>(get_version);
  if (name == "ncclGetUniqueId") return address<GetUniqueIdFunction>(get_unique_id);
  if (name == "ncclCommInitRankConfig")
    return address<CommInitRankConfigFunction>(comm_init_rank_config);
  if (name == "ncclCommDestroy") return address<CommDestroyFunction>(comm_destroy);
  if (name == "ncclCommAbort") return address<CommAbortFunction>(comm_abort);
  if (name == "ncclCommGetAsyncError")
    return address<CommGetAsyncErrorFunction>(comm_get_async_error);
  if (name == "ncclGetErrorString") return address<GetErrorStringFunction>(get_error_string);
  if (name == "ncclGetLastError") return address<GetLastErrorFunction>(get_last_error);
  if (name == "ncclGroupStart") return address<GroupStartFunction>(group_start);
  if (name == "ncclGroupEnd") return address<GroupEndFunction>(group_end);
  if (name == "ncclSend") return address<SendFunction>(send);
  if (name == "ncclRecv") return address<RecvFunction>(recv);
  if (name == "ncclBroadcast") return address<BroadcastFunction>(broadcast);
  if (name == "ncclAllReduce") return address<AllReduceFunction>(all_reduce);
  return nullptr;
}

constexpr FakeLibrary kNccl = {symbol};

}  // namespace

namespace lockstep::emulation {

const FakeLibrary* fake_nccl() {
  return planted().kind != "missing" ? &kNccl : nullptr;
}

}  // namespace lockstep::emulation
