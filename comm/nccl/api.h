// The functions of NCCL that we call, found at run time.
#pragma once

#include <string>

#include <nccl.h>

#include "core/cuda/library.h"

namespace lockstep::comm::nccl {

// Thread safety: all functions may be called from any thread.
class Api {
 public:
  // Errors: EnvironmentError, in three lines, for an NCCL that is missing, is older than 2.18, or
  // lacks a function.
  explicit Api(const std::string& soname = "libnccl.so.2");

  std::string version() const;  // "2.28.9"

 private:
  cuda::Library library_;
  template <class Function>
  Function* find(const char* name) const {
    return library_.function<Function>(name);
  }

 public:
  decltype(&ncclGetVersion) const get_version = find<decltype(ncclGetVersion)>("ncclGetVersion");
  decltype(&ncclGetUniqueId) const get_unique_id =
      find<decltype(ncclGetUniqueId)>("ncclGetUniqueId");
  decltype(&ncclCommInitRankConfig) const comm_init_rank_config =
      find<decltype(ncclCommInitRankConfig)>("ncclCommInitRankConfig");
  decltype(&ncclCommDestroy) const comm_destroy =
      find<decltype(ncclCommDestroy)>("ncclCommDestroy");
  decltype(&ncclCommAbort) const comm_abort = find<decltype(ncclCommAbort)>("ncclCommAbort");
  decltype(&ncclCommGetAsyncError) const comm_get_async_error =
      find<decltype(ncclCommGetAsyncError)>("ncclCommGetAsyncError");
  decltype(&ncclGetErrorString) const get_error_string =
      find<decltype(ncclGetErrorString)>("ncclGetErrorString");
  decltype(&ncclGetLastError) const get_last_error =
      find<decltype(ncclGetLastError)>("ncclGetLastError");
  decltype(&ncclGroupStart) const group_start = find<decltype(ncclGroupStart)>("ncclGroupStart");
  decltype(&ncclGroupEnd) const group_end = find<decltype(ncclGroupEnd)>("ncclGroupEnd");
  decltype(&ncclSend) const send = find<decltype(ncclSend)>("ncclSend");
  decltype(&ncclRecv) const recv = find<decltype(ncclRecv)>("ncclRecv");
  decltype(&ncclBroadcast) const broadcast = find<decltype(ncclBroadcast)>("ncclBroadcast");
  decltype(&ncclAllReduce) const all_reduce = find<decltype(ncclAllReduce)>("ncclAllReduce");
};

// The process's own, opened at the first call. Errors: as Api.
const Api& api();

}  // namespace lockstep::comm::nccl
