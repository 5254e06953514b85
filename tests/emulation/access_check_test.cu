// Tests what the access check reports, which line it names, and which accesses it allows.
#include <gmock/gmock.h>

#include "tests/emulation/kernel_test.h"

namespace lockstep::emulation {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class AccessCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kAccessesAreChecked) GTEST_SKIP() << "this build watches no accesses";
  }
};

std::string place(int line) {
  return EMULATED_LINE(line);
}

constexpr int kRaceOfWrites = __LINE__ + 2;
__global__ void race_of_writes(int* out) {
  out[threadIdx.x / 2] = 1;
}

constexpr int kReadAfterWrite = __LINE__ + 5;
__global__ void read_after_write(int* out) {
  __shared__ int values[64];
  values[threadIdx.x] = 1;
  __syncwarp();
  out[threadIdx.x] = values[63 - threadIdx.x];
}

constexpr int kWriteAfterRead = __LINE__ + 3;
__global__ void write_after_read(int* values) {
  const int next = values[(threadIdx.x + 1) % 64];
  values[threadIdx.x] = next;
}

constexpr int kBetweenBlocks = __LINE__ + 2;
__global__ void between_blocks(int* out) {
  if (threadIdx.x == 5) out[0] = static_cast<int>(blockIdx.x);
}

constexpr int kPlainAndAtomic = __LINE__ + 2;
__global__ void plain_and_atomic(int* out) {
  if (threadIdx.x == 0) out[0] += 1;
  if (threadIdx.x == 1) atomicAdd(out, 1);
}

TEST_F(AccessCheck, Races) {
  for (const Schedule& order : every_order()) {
    const ScopedSchedule scope(order);
    Buffer<int> memory(std::vector<int>(64, 0));
    EXPECT_THAT(fault_of({1, 64}, race_of_writes, memory.data()),
                AllOf(HasSubstr("race of two writes: 4 bytes"), HasSubstr(place(kRaceOfWrites))));
    EXPECT_THAT(fault_of({1, 64}, read_after_write, memory.data()),
                AllOf(HasSubstr("race: "), HasSubstr(place(kReadAfterWrite))));
    EXPECT_THAT(fault_of({1, 64}, write_after_read, memory.data()),
                AllOf(HasSubstr("race: "), HasSubstr("_test.cu:")));
    EXPECT_THAT(fault_of({2, 64}, between_blocks, memory.data()),
                AllOf(HasSubstr("race of two writes"), HasSubstr(place(kBetweenBlocks))));
    EXPECT_THAT(fault_of({1, 64}, plain_and_atomic, memory.data()), HasSubstr("race"));
  }
}

TEST_F(AccessCheck, NamesLineBlockThreadAndKernel) {
  const ScopedSchedule scope({.order = Order::kForward});
  Buffer<int> memory(std::vector<int>(64, 0));
  const std::string at = ", block (0,0,0), thread (";
  EXPECT_THAT(
      fault_of({1, 64}, race_of_writes, memory.data()),
      AllOf(HasSubstr(at + "1,0,0), " + place(kRaceOfWrites) + "\n"),
            HasSubstr("in lockstep::emulation::(anonymous namespace)::race_of_writes(int*)")));
  EXPECT_THAT(fault_of({1, 64}, write_after_read, memory.data()),
              HasSubstr(at + "1,0,0), " + place(kWriteAfterRead)));
  EXPECT_THAT(fault_of({1, 64}, plain_and_atomic, memory.data()),
              HasSubstr(at + "1,0,0), " + place(kPlainAndAtomic + 1)));
  EXPECT_THAT(fault_of({3, 64}, between_blocks, memory.data()),
              HasSubstr("block (1,0,0), thread (5,0,0), " + place(kBetweenBlocks)));
}

__global__ void ordered(int* memory, int* counter) {
  __shared__ int values[64];
  const unsigned thread = threadIdx.x;
  values[thread] = 1;
  __syncwarp();
  const int neighbor = values[thread ^ 1U];
  __syncwarp();
  values[thread ^ 1U] = neighbor;
  __syncthreads();
  memory[thread] = values[63 - thread] + memory[thread];
  __syncthreads();
  memory[63 - thread] += 1;
  atomicAdd(counter, 1);
  atomicMax(counter + 1, static_cast<int>(thread));
}

TEST_F(AccessCheck, LetsOrderedAccessesPass) {
  for (const Schedule& order : every_order()) {
    const ScopedSchedule scope(order);
    Buffer<int> memory(std::vector<int>(64, 0)), counter(std::vector<int>(2, 0));
    for (int launch = 1; launch <= 3; ++launch) {
      EXPECT_EQ(fault_of({1, 64}, ordered, memory.data(), counter.data()), "");
      EXPECT_EQ(memory.values(), std::vector<int>(64, 2 * launch));
      EXPECT_EQ(counter.values(), (std::vector<int>{64 * launch, 63}));
    }
  }
}

__global__ void store(int* out, int at) {
  if (threadIdx.x == 3) out[at] = 1;
}
__global__ void load(const int* in, int* out) {
  if (threadIdx.x == 3) out[0] = in[0];
}
__global__ void copy_word(const int* in, int* out) {
  if (threadIdx.x == 3) *reinterpret_cast<int4*>(out) = *reinterpret_cast<const int4*>(in);
}

TEST_F(AccessCheck, BoundsAreKeptAndTheAccessIsNotDone) {
  Buffer<int> memory(std::vector<int>(64, 0));
  EXPECT_EQ(fault_of({1, 32}, store, memory.data(), 63), "");
  EXPECT_THAT(fault_of({1, 32}, store, memory.data(), 64), HasSubstr("access out of bounds"));
  EXPECT_THAT(fault_of({1, 32}, store, memory.data(), -1), HasSubstr("access out of bounds"));
  int* const elsewhere = nullptr;
  EXPECT_THAT(fault_of({1, 32}, store, elsewhere, 4), HasSubstr("host memory used by a kernel"));
}

TEST_F(AccessCheck, MemoryOfTheHostAndFreedMemory) {
  Buffer<int> out(std::vector<int>{0});
  const auto far_away = std::make_unique<std::array<int, 4096>>();
  const int* const host = far_away->data() + 2048;
  EXPECT_THAT(fault_of({1, 32}, load, host, out.data()), HasSubstr("host memory used by a kernel"));
  Buffer<int> freed(std::vector<int>(1, 0));
  withdraw(freed.data());
  const int* const reads = freed.data();
  EXPECT_THAT(fault_of({1, 32}, load, reads, out.data()), HasSubstr("freed device memory used"));
}

TEST_F(AccessCheck, MisalignedWords) {
  Buffer<int4> in(std::vector<int4>(2)), out(2);
  int* const to = reinterpret_cast<int*>(out.data());
  const int* const from = reinterpret_cast<const int*>(in.data());
  const std::string misaligned = "misaligned access: 16 bytes";
  EXPECT_EQ(fault_of({1, 32}, copy_word, from, to), "");
  EXPECT_THAT(fault_of({1, 32}, copy_word, from + 1, to), HasSubstr(misaligned));
  EXPECT_THAT(fault_of({1, 32}, copy_word, from, to + 1), HasSubstr(misaligned));
}

// The compiler does not instrument copies of more than 16 bytes; kernels copy that many only in
// registers.
__global__ void copy_word_bytes(const int* in, int* out) {
  if (threadIdx.x != 3) return;
  int words[4];
  memcpy(words, in, sizeof(words));
  for (int i = 0; i < 4; ++i) out[i] = words[i];
}

TEST_F(AccessCheck, BytesThatAreCopied) {
  Buffer<int> in(std::vector<int>(15, 1)), out(64);
  const int* const last_words = in.data() + 12;
  EXPECT_EQ(fault_of({1, 32}, copy_word_bytes, last_words - 1, out.data()), "");
  EXPECT_THAT(fault_of({1, 32}, copy_word_bytes, last_words, out.data()),
              HasSubstr("out of bounds"));
}

__global__ void read_shared(int* out, int written) {
  __shared__ int values[32];
  if (static_cast<int>(threadIdx.x) < written) values[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

TEST_F(AccessCheck, ReadsOfWhatWasNeverWritten) {
  Buffer<int> unwritten(32), out(32);
  const int* const in = unwritten.data();
  EXPECT_THAT(fault_of({1, 32}, load, in, out.data()),
              HasSubstr("read of unwritten device memory"));
  EXPECT_EQ(fault_of({1, 32}, store, unwritten.data(), 0), "");
  EXPECT_EQ(fault_of({1, 32}, load, in, out.data()), "") << "an earlier launch wrote it";
  EXPECT_EQ(fault_of({1, 32}, read_shared, out.data(), 32), "");
  EXPECT_THAT(fault_of({1, 32}, read_shared, out.data(), 31),
              AllOf(HasSubstr("read of unwritten shared memory"), HasSubstr("thread (31,0,0)")))
      << "an earlier block's values do not count";
}

__constant__ int limits[2] = {1, 2};
__global__ void use_constant(int* out, int changes) {
  if (static_cast<int>(threadIdx.x) < changes) limits[0] = 1;
  out[threadIdx.x] = limits[1];
}

TEST_F(AccessCheck, ConstantMemoryIsReadOnly) {
  Buffer<int> out(32);
  EXPECT_EQ(fault_of({1, 32}, use_constant, out.data(), 0), "");
  EXPECT_THAT(fault_of({1, 32}, use_constant, out.data(), 1),
              HasSubstr("write to __constant__ memory"));
}

__device__ __forceinline__ void helper(int* out, int at) {
  out[at] = 1;
}
constexpr int kCallsHelper = __LINE__ + 2;
__global__ void calls_helper(int* out, int at) {
  helper(out, at);
}

TEST_F(AccessCheck, NamesTheLinesThatAHelperWasInlinedThrough) {
  Buffer<int> out(std::vector<int>(1, 0));
  EXPECT_THAT(fault_of({1, 1}, calls_helper, out.data(), 1),
              AllOf(HasSubstr(place(kCallsHelper - 4) + ", inlined into "),
                    HasSubstr(place(kCallsHelper) + "\n")));
}

TEST_F(AccessCheck, AReportIsNotCarriedIntoTheNextGrid) {
  Buffer<int> memory(std::vector<int>(64, 0));
  EXPECT_NE(fault_of({1, 64}, race_of_writes, memory.data()), "");
  EXPECT_EQ(fault_of({1, 32}, store, memory.data(), 0), "");
}

TEST_F(AccessCheck, ManyLaunches) {
  const ScopedSchedule scope({.order = Order::kForward});
  Buffer<int> memory(std::vector<int>(64, 0));
  for (int launch = 0; launch < 2100; ++launch)  // the stamps' launch number wraps
    ASSERT_EQ(fault_of({1, 32}, store, memory.data(), 0), "");
  EXPECT_NE(fault_of({1, 64}, race_of_writes, memory.data()), "");
}

}  // namespace
}  // namespace lockstep::emulation
