// Our own words for NCCL's interface against NCCL's header, where one is installed.
#include <cstddef>

#include <gtest/gtest.h>

#include "comm/nccl/abi.h"

#if defined(LOCKSTEP_CUDA) && __has_include(<nccl.h>)
#include <nccl.h>

namespace lockstep::comm::nccl::nccl_abi_test {
namespace {

static_assert(kSuccess == static_cast<int>(ncclSuccess));
static_assert(kUnhandledCudaError == static_cast<int>(ncclUnhandledCudaError));
static_assert(kSystemError == static_cast<int>(ncclSystemError));
static_assert(kInternalError == static_cast<int>(ncclInternalError));
static_assert(kInvalidArgument == static_cast<int>(ncclInvalidArgument));
static_assert(kInvalidUsage == static_cast<int>(ncclInvalidUsage));
static_assert(kRemoteError == static_cast<int>(ncclRemoteError));
static_assert(kInProgress == static_cast<int>(ncclInProgress));
static_assert(kUint8 == static_cast<int>(ncclUint8));
static_assert(kFloat16 == static_cast<int>(ncclFloat16));
static_assert(kFloat32 == static_cast<int>(ncclFloat32));
static_assert(kBfloat16 == static_cast<int>(ncclBfloat16));
static_assert(kSum == static_cast<int>(ncclSum));
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(Result) == sizeof(ncclResult_t) && sizeof(DataType) == sizeof(ncclDataType_t));
static_assert(sizeof(Reduction) == sizeof(ncclRedOp_t));

static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Config, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(Config, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare));

TEST(NcclAbi, NothingSaidIsWhatTheHeaderSays) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.version, static_cast<unsigned>(NCCL_VERSION(2, 18, 0)));
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.cga_cluster_size, theirs.cgaClusterSize);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
}

}  // namespace
}  // namespace lockstep::comm::nccl::nccl_abi_test
#endif
