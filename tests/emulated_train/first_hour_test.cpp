// What the first hour on a GPU machine shows: rows D1, D4, D5 and D6 of the CUDA audit, and
// `lockstep doctor` beside them.
#include "tests/emulated_train/programs.h"

namespace lockstep::testing::first_hour_test {
namespace {

class FirstHour : public EmulatedProgram {
 protected:
  using Environment = std::map<std::string, std::string>;

  // One step, on as many ranks; the device is the machine's choice.
  ProgramResult run(const Environment& machine, const Arguments& more = {}, int ranks = 1) const {
    Arguments line = on("auto", "run", {"-b", "4", "--max-steps", "1", "--no-eval"});
    line.insert(line.end(), {"--shards", std::to_string(ranks), "--overwrite"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramOptions options = {.environment = machine};
    return run_on(ranks, line, options);
  }
  std::string device_of_run() const {
    return read_json(dir_ / "run" / "run.json").at("ranks").at(0).at("device");
  }
  static ProgramResult doctor(const Environment& machine, const Arguments& more = {}) {
    Arguments line = {"lockstep_emulated", "doctor"};
    line.insert(line.end(), more.begin(), more.end());
    return run_program(line, {.environment = machine});
  }
  static void expect_said(const std::string& text, const std::string& part, int times = 1) {
    EXPECT_EQ(count_of(text, part), times) << part << "\nin\n" << text;
  }
};

class BrokenDriver : public FirstHour {};
class CudnnAbsent : public FirstHour {};
class ProductsInF32 : public FirstHour {};
class WithoutNccl : public FirstHour {};

TEST_F(BrokenDriver, NoDriverThatFailsMeansASilentRunOnTheCpu) {
  for (const auto& [driver, what] :
       {std::pair("too-old", "the CUDA driver is too old: it knows CUDA 11.8, this build uses "),
        std::pair("broken", "CUDA does not start: cudaErrorSystemNotReady: ")}) {
    SCOPED_TRACE(driver);
    const Environment machine = {{"LOCKSTEP_EMULATION_DRIVER", driver}};
    const ProgramResult result = run(machine);
    expect_success(result);
    EXPECT_EQ(device_of_run(), "cpu");
    expect_said(result.err, std::string("lockstep: warning: training on the CPU: ") + what);
    expect_said(result.err, "; --device cpu asks for the CPU\n");
    const ProgramResult page = doctor(machine);
    EXPECT_EQ(page.exit_code, 0) << said(page);  // on the CPU
    expect_said(page.out, std::string("  broken   GPU            ") + what);
    expect_said(page.out, "device         cpu\n");
    const ProgramResult refused = run_program(on_cuda("refused"), {.environment = machine});
    EXPECT_EQ(refused.exit_code, 5) << said(refused);
  }
}

TEST_F(BrokenDriver, WhoAskedForTheCpuOrHasNoGpuIsNotWarned) {
  expect_said(
      run({{"LOCKSTEP_EMULATION_DRIVER", "too-old"}}, {"--device", "cpu"}).err, "driver", 0);
  expect_said(run({{"LOCKSTEP_EMULATION_DEVICES", "0"}, {"CUDA_VISIBLE_DEVICES", ""}}).err,
              "training on the CPU",
              0);
  const ProgramResult hidden =
      run({{"LOCKSTEP_EMULATION_DEVICES", "0"}, {"CUDA_VISIBLE_DEVICES", "7"}});
  expect_said(hidden.err, "no CUDA device is visible: no CUDA-capable device is detected (");
}

TEST_F(CudnnAbsent, ConvolutionsWithoutCudnnAreSaidAtTheStart) {
  const ProgramResult result = run({});
  expect_success(result);
  EXPECT_EQ(device_of_run(), "cuda");
  expect_said(result.err, "lockstep: warning: convolutions run on Lockstep's own kernels, which");
  expect_said(result.err, ": scripts/setup.sh cuda (or pip install nvidia-cudnn-cu");
  const ProgramResult page = doctor({});
  EXPECT_EQ(page.exit_code, 0) << said(page);
  expect_said(page.out, "  missing  cuDNN          convolutions run on Lockstep's own kernels");
  expect_said(page.out, "convolutions   Lockstep's own kernels\n");
}

TEST_F(ProductsInF32, ProductsInF32AreSaidOnce) {
  const std::string note = "note: products are in f32, ";
  expect_said(run({}).err, note);
  expect_said(run({}, {"--opt-level", "O2"}).err, note, 0);
  expect_said(run({}, {"--opt-level", "O0"}).err, note, 0);  // asked for
}

// The host is the last that gradients can travel through, and each step down is said.
TEST_F(WithoutNccl, WithoutNcclGradientsTravelOtherwiseWithANote) {
  const Environment machine = {{"LOCKSTEP_EMULATION_DEVICES", "2"},
                               {"LOCKSTEP_EMULATION_NCCL", "missing"}};
  const ProgramResult over_ipc = run(machine, {}, 2);
  expect_success(over_ipc);
  expect_said(over_ipc.err, "note: gradients travel over CUDA IPC: NCCL 2 cannot be loaded");
  Environment apart = machine;
  apart["LOCKSTEP_EMULATION_IPC"] = "no-peers";
  const ProgramResult over_host = run(apart, {}, 2);
  expect_success(over_host);
  expect_said(over_host.err, "note: gradients travel through the host: NCCL 2 cannot be loaded");
  expect_said(doctor(machine).out, "  missing  NCCL           gradients between GPUs travel over");
}

TEST_F(FirstHour, RanksThatDoNotMatchTheGpusAreSaid) {
  const ProgramResult idle = run({{"LOCKSTEP_EMULATION_DEVICES", "4"}});
  expect_said(idle.err, "note: 3 of this machine's 4 GPUs are without a rank: scripts/run -np 4 ");
  const ProgramResult shared = run({{"LOCKSTEP_EMULATION_DEVICES", "1"}}, {}, 2);
  expect_said(shared.err,
              "note: 2 ranks share 1 GPU, where one per GPU is faster: scripts/run -np 1");
  const ProgramResult fits = run({{"LOCKSTEP_EMULATION_DEVICES", "2"}}, {}, 2);
  expect_said(fits.err, " without a rank", 0);
  expect_said(fits.err, "share", 0);
}

TEST_F(FirstHour, TheDoctorSuggestsARankForEachGpu) {
  EXPECT_EQ(doctor({{"LOCKSTEP_EMULATION_DEVICES", "8"}}, {"--ranks"}).out, "8\n");
  EXPECT_EQ(doctor({{"LOCKSTEP_EMULATION_DEVICES", "1"}}, {"--ranks"}).out, "1\n");
  EXPECT_EQ(doctor({{"LOCKSTEP_EMULATION_DEVICES", "0"}}, {"--ranks"}).out, "2\n");
}

}  // namespace
}  // namespace lockstep::testing::first_hour_test
