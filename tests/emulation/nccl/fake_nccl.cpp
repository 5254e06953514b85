// The NCCL functions that Lockstep calls. They guarantee no more than NCCL does: work given to a
// stream runs once every rank's stream has reached it, and a call that returned ncclInProgress may
// reach its stream only after ncclCommGetAsyncError() has been called. A separate thread then adds
// the work to the stream, as in NCCL's nonblocking communicators. LOCKSTEP_EMULATION_NCCL plants a
// fault:
//   missing, old-version, lacks-a-function   faults of the library
//   init-fails, init-hangs   creating a communicator fails or hangs
//   async-error:N, hangs:N   each rank's N-th group of calls; a captured group counts once
//   late-error:N   an asynchronous error once the N-th group has been queued
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/emulation/nccl/collective.h"
#include "tests/emulation/runtime/libraries.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

// The program's handle of a communicator.
struct ncclComm {
  std::shared_ptr<NcclCommunicator> shared;
  bool is_connecting = false;        // not all ranks have joined yet
  std::function<void()> pending;     // calls that have not reached their stream
  bool asked = false;                // the status was polled while calls were pending
  ncclResult_t error = ncclSuccess;  // an asynchronous error
  bool fails_next = false;           // the error comes after the next call that asks for it
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
  std::thread::id thread = std::this_thread::get_id();
};
thread_local Group group;

// Makes a call that is not allowed to a thread in CUDA's default capture mode while any stream
// captures in that mode: NCCL does not guarantee that it changes the mode of its thread.
bool may_ask_for_events() {
  cudaEvent_t event = nullptr;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return false;
  const bool may = cudaEventQuery(event) == cudaSuccess;
  cudaEventDestroy(event);
  return may;
}

void submit_to_stream(ncclComm& comm, CUstream_st* handle, std::vector<NcclCall> calls) {
  const Planted fault = planted();
  ++comm.groups;
  if (comm.groups == fault.at) {
    comm.fails_next = fault.kind == "late-error";
    comm.shared->hangs = !comm.fails_next;  // work that meets an error does not end either
    if (fault.kind == "async-error") comm.error = ncclRemoteError;
  }
  CUstream_st* const stream = state().queues.find(handle);
  const auto work = std::make_shared<Collective>(comm.shared, std::move(calls));
  if (stream == nullptr) {
    comm.error = ncclInvalidArgument;
  } else if (!may_ask_for_events()) {
    comm.error = ncclUnhandledCudaError;
  } else if (submit(*stream, [=] { work->run(); }, [=] { return work->ready(); }) != cudaSuccess) {
    comm.error = ncclUnhandledCudaError;
  }
}

ncclResult_t add(ncclComm_t comm, CUstream_st* stream, const NcclCall& call) {
  const bool first = group.comm == nullptr;
  const bool same = first || (group.comm == comm && group.stream == stream);
  if (group.depth == 0 || !same || comm->is_connecting || comm->pending != nullptr)
    return ncclInvalidUsage;
  if (comm->error != ncclSuccess) return comm->error;
  const bool on_device = state().heap.place_of(call.from == nullptr ? call.to : call.from,
                                               call.bytes()) == Place::kDevice;
  if (!on_device || call.peer < 0 || call.peer >= comm->shared->size) return ncclInvalidArgument;
  group.comm = comm;
  group.stream = stream;
  group.calls.push_back(call);
  return ncclInProgress;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = planted().kind == "old-version" ? NCCL_VERSION(2, 17, 1) : NCCL_VERSION(2, 28, 9);
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::string where = World::create();
  std::snprintf(id->internal, sizeof(id->internal), "%s", where.c_str());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const bool sound = config->magic == 0xcafebeef && config->size == sizeof(ncclConfig_t) &&
                     config->version == NCCL_VERSION_CODE && config->blocking == 0;
  if (!sound || ranks > kMaxRanks || rank >= ranks) return ncclInvalidArgument;
  if (group.depth != 0) return ncclInvalidUsage;  // NCCL would make it when the group ends
  if (planted().kind == "init-fails") return ncclUnhandledCudaError;
  auto made = std::make_unique<ncclComm>();
  made->shared = std::make_shared<NcclCommunicator>(rank, ranks, id.internal);
  made->is_connecting = true;
  if (planted().kind != "init-hangs") made->shared->world.join();
  *comm = made.release();
  return ncclInProgress;
}

// Aborts the process if streams or graphs still hold the communicator, since they would use it
// after its end.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(state().mutex);
  if (comm->shared.use_count() > 1) {
    std::fputs("NCCL: a communicator ends before the work that it is part of\n", stderr);
    std::abort();
  }
  delete comm;
  return ncclSuccess;
}

// Returns when no graph holds the communicator, as in NCCL; here also when no stream holds it.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::unique_lock lock(state().mutex);
  comm->shared->aborted = true;
  while (comm->shared.use_count() > 1) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  std::unique_lock lock(state().mutex);
  if (comm->is_connecting) comm->is_connecting = comm->shared->world.joined() < comm->shared->size;
  if (comm->pending && comm->asked) {
    lock.unlock();  // the other thread takes it
    std::thread(std::exchange(comm->pending, {})).join();
    lock.lock();
  }
  comm->asked = static_cast<bool>(comm->pending);
  *error = comm->error != ncclSuccess                        ? comm->error
           : comm->is_connecting || comm->pending != nullptr ? ncclInProgress
                                                             : ncclSuccess;
  if (*error == ncclSuccess && std::exchange(comm->fails_next, false)) {
    comm->error = ncclRemoteError;
  }
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "invalid usage";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm == nullptr ? "" : "emulated";
}

ncclResult_t ncclGroupStart() {
  if (group.depth != 0) return ncclInvalidUsage;  // Lockstep does not nest groups
  group = {.depth = 1};
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  Group ended = std::exchange(group, {});
  if (ended.depth != 1) return ncclInvalidUsage;
  if (ended.comm == nullptr) return ncclSuccess;
  if (ended.comm->error != ncclSuccess) return ended.comm->error;
  const std::lock_guard lock(state().mutex);
  ended.comm->pending = [ended = std::move(ended)] {
    const std::lock_guard launching(state().mutex);
    if (std::this_thread::get_id() != ended.thread) ++runtime_counters.nccl_launches_elsewhere;
    submit_to_stream(*ended.comm, ended.stream, ended.calls);
  };
  return ncclInProgress;
}

ncclResult_t ncclSend(const void* from,
                      size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      CUstream_st* to) {
  return add(
      comm,
      to,
      {.kind = NcclCall::Kind::kSend, .from = from, .count = count, .type = type, .peer = peer});
}

ncclResult_t ncclRecv(
    void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, CUstream_st* stream) {
  return add(
      comm,
      stream,
      {.kind = NcclCall::Kind::kReceive, .to = to, .count = count, .type = type, .peer = peer});
}

ncclResult_t ncclBroadcast(const void* from,
                           void* to,
                           size_t count,
                           ncclDataType_t type,
                           int root,
                           ncclComm_t comm,
                           CUstream_st* stream) {
  if (from != to) return ncclInvalidArgument;  // Lockstep broadcasts in place
  return add(comm,
             stream,
             {.kind = NcclCall::Kind::kBroadcast,
              .from = from,
              .to = to,
              .count = count,
              .type = type,
              .peer = root});
}

ncclResult_t ncclAllReduce(const void* from,
                           void* to,
                           size_t count,
                           ncclDataType_t type,
                           ncclRedOp_t,
                           ncclComm_t comm,
                           CUstream_st* stream) {
  return add(
      comm,
      stream,
      {.kind = NcclCall::Kind::kAllReduce, .from = from, .to = to, .count = count, .type = type});
}

namespace {

const FakeFunction kFunctions[] = {
    LS_FAKE(ncclGetVersion),
    LS_FAKE(ncclGetUniqueId),
    LS_FAKE(ncclCommInitRankConfig),
    LS_FAKE(ncclCommDestroy),
    LS_FAKE(ncclCommAbort),
    LS_FAKE(ncclCommGetAsyncError),
    LS_FAKE(ncclGetErrorString),
    LS_FAKE(ncclGetLastError),
    LS_FAKE(ncclGroupStart),
    LS_FAKE(ncclGroupEnd),
    LS_FAKE(ncclSend),
    LS_FAKE(ncclRecv),
    LS_FAKE(ncclBroadcast),
    LS_FAKE(ncclAllReduce),
};

void* symbol(const char* wanted) {
  const std::string_view name = wanted;
  if (name == "ncclSend" && planted().kind == "lacks-a-function") return nullptr;
  for (const FakeFunction& function : kFunctions) {
    if (name == function.name) return function.address;
  }
  return nullptr;
}

constexpr FakeLibrary kNccl = {symbol};

}  // namespace

namespace lockstep::emulation {

const FakeLibrary* fake_nccl() {
  return planted().kind != "missing" ? &kNccl : nullptr;
}

}  // namespace lockstep::emulation
