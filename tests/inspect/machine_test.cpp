#include "inspect/doctor/machine.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "inspect/doctor/host_findings.h"
#include "tests/support/temp_dir.h"
#include "trainers/machine/cuda_findings.h"
#include "trainers/machine/run_findings.h"

namespace lockstep::trainers::machine_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;
using testing::write_text;
using Kind = cuda::Obstacle::Kind;

HostFacts usual_host() {
  return {.cpu = {.level = "x86-64-v3", .onednn = "2.6.3"},
          .cores = 16,
          .usable_cores = 16,
          .memory = int64_t{64} << 30,
          .shared = int64_t{64} << 20,
          .open_files = 1024,
          .locked_memory = int64_t{8} << 20,
          .mpi = "Open MPI v4.1.4",
          .has_mpirun = true};
}

CudaFacts gpus(int count) {
  CudaFacts facts = {.driver = "13.0",
                     .toolkit = "13.0",
                     .cudnn = {.version = "9.19.0", .is_expected = true},
                     .cublaslt = {.version = "13.1.0", .is_expected = true},
                     .nccl = {.version = "2.28.9"}};
  for (int index = 0; index < count; ++index) {
    cuda::DeviceProperties gpu;
    gpu.index = index;
    gpu.name = "NVIDIA H200";
    gpu.major = 9;
    gpu.total_bytes = size_t{141} << 30;
    facts.devices.push_back(gpu);
  }
  return facts;
}

CudaFacts without_gpu(Kind kind) {
  return {.obstacle = cuda::Obstacle{.kind = kind, .error = EnvironmentError("what", "why", "do")}};
}

TEST(Doctor, TellsWhatAMachineHasAndWhatIsUsed) {
  const Machine machine = {.cuda = gpus(8), .host = usual_host()};
  EXPECT_TRUE(machine.can_train());
  EXPECT_EQ(machine.suggested_ranks(), 8);
  EXPECT_THAT(
      describe(machine),
      AllOf(HasSubstr("  ok       GPU driver     knows CUDA 13.0\n"),
            HasSubstr("  ok       GPU 7          NVIDIA H200, 141.0 GiB, compute capability 9.0\n"),
            HasSubstr("  note     /dev/shm       64.0 MiB, where NCCL and Open MPI keep buffers: "
                      "little for 8 GPUs\n" +
                      std::string(26, ' ') + "try: docker run --shm-size=1g\n"),
            HasSubstr("  note     locked memory  8.0 MiB"),
            HasSubstr("convolutions   cuDNN 9.19.0\n"),
            HasSubstr("gradients      NCCL 2.28.9\n"),
            HasSubstr("ranks          8, one per GPU: scripts/run -np 8 train_resnet\n"),
            HasSubstr("\ntraining can start\n")));
}

TEST(Doctor, WithoutAGpuTrainsOnTheCpu) {
  const Machine machine = {.cuda = without_gpu(Kind::kNotBuilt), .host = usual_host()};
  EXPECT_TRUE(machine.can_train());
  EXPECT_EQ(machine.suggested_ranks(), 2);
  EXPECT_THAT(describe(machine),
              AllOf(HasSubstr("  ok       GPU            none: what: why\n"),
                    HasSubstr("device         cpu\n"),
                    HasSubstr("convolutions   oneDNN 2.6.3\n"),
                    Not(HasSubstr("cuDNN ")),
                    Not(HasSubstr("missing")),
                    Not(HasSubstr("broken"))));
}

TEST(Doctor, SaysWhereTrainingCannotStart) {
  Machine cpu = {.cuda = without_gpu(Kind::kNoDriver), .host = usual_host()};
  cpu.host.cpu.onednn = "none";
  EXPECT_FALSE(cpu.can_train());
  EXPECT_THAT(describe(cpu), HasSubstr("training cannot start: see what is broken\n"));
  EXPECT_THAT(describe(cpu), HasSubstr("  broken   CPU kernels    this build has no oneDNN"));
  Machine gpu = {.cuda = gpus(1), .host = usual_host()};
  gpu.host.cpu.onednn = "none";
  EXPECT_TRUE(gpu.can_train());
  gpu.cuda.cudnn = {.problem = "cuDNN 9 cannot be loaded", .is_expected = true};
  EXPECT_FALSE(gpu.can_train());
  EXPECT_THAT(describe(gpu), HasSubstr("  broken   cuDNN          cuDNN 9 cannot be loaded\n"));
  gpu.host.cpu.problem = "LOCKSTEP_ISA=v9: there is no such level";
  gpu.cuda.cudnn = {.version = "9.19.0", .is_expected = true};
  EXPECT_FALSE(gpu.can_train());
}

TEST(Doctor, ThreadsBeyondAContainersQuotaAreSaid) {
  HostFacts host = usual_host();
  host.limits = {.cores = 2.5, .memory = int64_t{4} << 30};
  const std::string page = page_of("", host_findings(host, 0));
  EXPECT_THAT(page, HasSubstr("16 of 16 usable, but the container's quota is 2.5"));
  EXPECT_THAT(page, HasSubstr("try: --threads 2 on one rank\n"));
  EXPECT_THAT(page, HasSubstr("64.0 GiB, of which the container may take 4.0 GiB\n"));
  EXPECT_THAT(page, Not(HasSubstr("locked memory")));  // needed only for NCCL between GPUs
}

TEST(Doctor, ReadsTheLeastLimitOfNestedCgroups) {
  const TempDir dir;
  const auto write = [&](const char* file, const std::string& text) {
    std::filesystem::create_directories((dir / file).parent_path());
    write_text(dir / file, text);
  };
  EXPECT_EQ(read_cgroup(dir.path()).cores, std::nullopt);
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/job/step/memory.max", "2000\n");
  write("sys/fs/cgroup/job/memory.max", "max\n");
  EXPECT_EQ(read_cgroup(dir.path()).cores, 1.5);
  EXPECT_EQ(read_cgroup(dir.path()).memory, 2000);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");  // cgroup version 1
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read_cgroup(dir.path()).cores, 1.0);
  EXPECT_EQ(read_cgroup(dir.path()).memory, 2000);
}

TEST(UnusedGpu, AGpuBesideABuildOrAProcessWithoutCudaIsSaid) {
  const TempDir dir;
  EXPECT_FALSE(has_gpu_traces(dir.path()));
  std::filesystem::create_directories(dir / "dev");
  write_text(dir / "dev/nvidia0", "");
  EXPECT_TRUE(has_gpu_traces(dir.path()));
  for (const Kind kind : {Kind::kNotBuilt, Kind::kNoDriver, Kind::kNoDevice}) {
    CudaFacts facts = without_gpu(kind);
    EXPECT_FALSE(unused_gpu(facts));  // such as a laptop
    facts.has_traces = true;
    EXPECT_TRUE(unused_gpu(facts));
    facts.mask = "";  // CUDA_VISIBLE_DEVICES was emptied on purpose
    EXPECT_FALSE(unused_gpu(facts));
  }
  CudaFacts facts = without_gpu(Kind::kNotBuilt);
  facts.has_traces = true;
  EXPECT_EQ(start_line(unused_gpu(facts).value()),
            "lockstep: warning: an NVIDIA GPU's driver is here, and this build has no CUDA: "
            "scripts/setup.sh cuda, then LOCKSTEP_CUDA=ON scripts/build_training.sh");
}

TEST(MissingCudnn, ABuildWithoutCudnnSaysWhatInstallsIt) {
  EXPECT_FALSE(no_cudnn({.version = "9.19.0"}, "13.0"));
  EXPECT_EQ(start_line(no_cudnn({.problem = "this build has no cuDNN"}, "12.9").value()),
            "lockstep: warning: convolutions run on Lockstep's own kernels, which are slow: this "
            "build has no cuDNN: scripts/setup.sh cuda (or pip install nvidia-cudnn-cu12), then "
            "scripts/build_training.sh");
}

TEST(OldCard, AnOldCardIsExplained) {
  Machine machine = {.cuda = gpus(2), .host = usual_host()};
  machine.cuda.devices[1].major = 7;
  EXPECT_FALSE(machine.can_train());
  EXPECT_THAT(describe(machine), HasSubstr("7.0: too old, the kernels need 8.0\n"));
}

TEST(ShareFindings, NameTheNumberOfRanksThatFits) {
  EXPECT_TRUE(share_findings({.ranks = 8, .used = 8, .visible = 8}, "train_resnet").empty());
  // A launcher may show each rank only its own GPU.
  EXPECT_TRUE(share_findings({.ranks = 8, .used = 8, .visible = 1}, "train_resnet").empty());
  const auto shared = share_findings({.ranks = 4, .used = 2, .visible = 2}, "train_resnet");
  ASSERT_EQ(shared.size(), 1U);
  EXPECT_THAT(
      start_line(shared[0]),
      HasSubstr("note: 4 ranks share 2 GPUs, where one per GPU is faster: scripts/run -np 2 "
                "train_resnet, or torchrun --no-python --nproc_per_node=2 "));
}

}  // namespace
}  // namespace lockstep::trainers::machine_test
