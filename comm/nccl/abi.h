// NCCL's C interface as far as we call it, so that a build needs no header of it: what nccl.h says
// since 2.18. tests/comm/nccl_abi_test.cpp compares the two where that header is installed.
#pragma once

#include <climits>
#include <cstddef>

struct CUstream_st;
struct ncclComm;

namespace lockstep::comm::nccl {

using Handle = ncclComm*;

enum Result : int {  // NOLINT(performance-enum-size): the library's
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum DataType : int {  // NOLINT(performance-enum-size)
  kUint8 = 1,
  kFloat16 = 6,
  kFloat32 = 7,
  kBfloat16 = 9,
};
enum Reduction : int { kSum = 0 };  // NOLINT(performance-enum-size)

// 2.18 is 21800.
constexpr int version_code(int major, int minor, int patch) {
  return major * 10000 + minor * 100 + patch;
}
constexpr int kAbiVersion = version_code(2, 18, 0);

struct UniqueId {
  char internal[128];
};

// The layout of version 2.18. A newer library takes further fields as not set.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kAbiVersion;
  int blocking = INT_MIN;
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

using GetVersionFunction = Result(int* version);
using GetUniqueIdFunction = Result(UniqueId* id);
using CommInitRankConfigFunction =
    Result(Handle* comm, int ranks, UniqueId id, int rank, Config* config);
using CommDestroyFunction = Result(Handle comm);
using CommAbortFunction = Result(Handle comm);
using CommGetAsyncErrorFunction = Result(Handle comm, Result* error);
using GetErrorStringFunction = const char*(Result result);
using GetLastErrorFunction = const char*(Handle comm);
using GroupStartFunction = Result();
using GroupEndFunction = Result();
using SendFunction =
    Result(const void* from, size_t count, DataType type, int peer, Handle comm, CUstream_st*);
using RecvFunction =
    Result(void* to, size_t count, DataType type, int peer, Handle comm, CUstream_st*);
using BroadcastFunction = Result(
    const void* from, void* to, size_t count, DataType type, int root, Handle comm, CUstream_st*);
using AllReduceFunction = Result(const void* from,
                                 void* to,
                                 size_t count,
                                 DataType type,
                                 Reduction reduction,
                                 Handle comm,
                                 CUstream_st*);

}  // namespace lockstep::comm::nccl
