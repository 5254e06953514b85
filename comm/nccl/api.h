// The functions of NCCL that we call, found at run time.
#pragma once

#include <string>

#include "comm/nccl/abi.h"
#include "core/cuda/library.h"

namespace lockstep::comm::nccl {

// Thread safety: all may be called.
class Api {
 public:
  // Errors: EnvironmentError, in three lines, for an NCCL that is missing, is older than 2.18, or
  // lacks a function; also in a build without CUDA.
  explicit Api(const std::string& soname = "libnccl.so.2");

  std::string version() const;  // "2.28.9"

 private:
  cuda::Library library_;
  template <class Function>
  Function* find(const char* name) const {
    return library_.function<Function>(name);
  }

 public:
  GetVersionFunction* const get_version = find<GetVersionFunction>("ncclGetVersion");
  GetUniqueIdFunction* const get_unique_id = find<GetUniqueIdFunction>("ncclGetUniqueId");
  CommInitRankConfigFunction* const comm_init_rank_config =
      find<CommInitRankConfigFunction>("ncclCommInitRankConfig");
  CommDestroyFunction* const comm_destroy = find<CommDestroyFunction>("ncclCommDestroy");
  CommAbortFunction* const comm_abort = find<CommAbortFunction>("ncclCommAbort");
  CommGetAsyncErrorFunction* const comm_get_async_error =
      find<CommGetAsyncErrorFunction>("ncclCommGetAsyncError");
  GetErrorStringFunction* const get_error_string =
      find<GetErrorStringFunction>("ncclGetErrorString");
  GetLastErrorFunction* const get_last_error = find<GetLastErrorFunction>("ncclGetLastError");
  GroupStartFunction* const group_start = find<GroupStartFunction>("ncclGroupStart");
  GroupEndFunction* const group_end = find<GroupEndFunction>("ncclGroupEnd");
  SendFunction* const send = find<SendFunction>("ncclSend");
  RecvFunction* const recv = find<RecvFunction>("ncclRecv");
  BroadcastFunction* const broadcast = find<BroadcastFunction>("ncclBroadcast");
  AllReduceFunction* const all_reduce = find<AllReduceFunction>("ncclAllReduce");
};

// The process's own, opened at the first call. Errors: as Api.
const Api& api();

}  // namespace lockstep::comm::nccl
