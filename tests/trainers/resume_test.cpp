#include "trainers/checkpoint/resume.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/options_of.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers::resume_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::options_of;
using testing::read_text;
using testing::TempDir;
using testing::TinyRun;
using testing::write_text;
using testing::write_tiny;

// A run directory with checkpoints of steps 10, 20 and 30.
class FindResumePoint : public ::testing::Test {
 protected:
  FindResumePoint() {
    fs::create_directories(run_ / "checkpoints");
    for (const int64_t step : {10, 20, 30}) write_tiny(run_ / "checkpoints", TinyRun(1), step);
    fs::create_symlink("step0000030.safetensors", run_ / "checkpoints/last.safetensors");
  }

  // Returns the step that was found, 0 for none, or the error's text.
  std::string find(const std::string& resume) {
    notes_.clear();
    try {
      const auto found = find_resume_point(resume, run_, notes_);
      if (!found) return "none";
      EXPECT_EQ(found->run_directory, run_);
      return std::to_string(found->checkpoint.record.position.steps);
    } catch (const CheckpointError& error) {
      return format_error(error);
    }
  }
  void damage(const std::string& name) {
    const fs::path file = run_ / "checkpoints" / name;
    std::string bytes = read_text(file);
    bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 16);
    write_text(file, bytes);
  }

  const TempDir dir_;
  const fs::path run_ = dir_ / "run";
  std::vector<std::string> notes_;
};

TEST_F(FindResumePoint, ByEveryNameThatAUserHasForIt) {
  EXPECT_EQ(find("auto"), "30");
  EXPECT_EQ(find(run_), "30");
  EXPECT_EQ(find(run_ / "checkpoints"), "30");
  EXPECT_EQ(find(run_ / "checkpoints/last.safetensors"), "30");
  EXPECT_EQ(find(run_ / "checkpoints/step0000020.safetensors"), "20");
  EXPECT_EQ(find(run_ / "checkpoints/step0000020.state.safetensors"), "20");
  EXPECT_EQ(find(run_ / "checkpoints" / "." / "last.safetensors"), "30");
  fs::create_symlink(run_ / "checkpoints/last.safetensors", dir_ / "link.safetensors");
  EXPECT_EQ(find(dir_ / "link.safetensors"), "30");
  fs::create_symlink("round.safetensors", dir_ / "round.safetensors");
  EXPECT_THAT(find(dir_ / "round.safetensors"), HasSubstr("round.safetensors"));
  EXPECT_THAT(notes_, ElementsAre());
}

TEST_F(FindResumePoint, AutoPassesOverDamageAndSaysSo) {
  damage("step0000030.safetensors");
  EXPECT_EQ(find("auto"), "20");
  EXPECT_THAT(notes_,
              ElementsAre(AllOf(HasSubstr("note: skipped a checkpoint: cannot use "),
                                HasSubstr("step0000030.safetensors"),
                                HasSubstr("its digest differs"))));
}

TEST_F(FindResumePoint, APathToDamageIsRefused) {
  damage("step0000030.state.safetensors");
  EXPECT_THAT(find(run_), HasSubstr("step0000030.state.safetensors"));
  EXPECT_THAT(find(run_ / "checkpoints/last.safetensors"), HasSubstr("its digest differs"));
}

TEST_F(FindResumePoint, AutoStartsAfreshOnlyWhereThereIsNothingToLose) {
  for (const int64_t step : {10, 20, 30}) damage(model_file_name(step));
  EXPECT_THAT(find("auto"), AllOf(HasSubstr("no checkpoint in "), HasSubstr("3 damaged")));
  fs::remove_all(run_ / "checkpoints");
  EXPECT_EQ(find("auto"), "none");
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("there is no checkpoint in " + run_.string())));
}

TEST_F(FindResumePoint, AutoReplacesNoModelsWhoseStateIsMissing) {
  for (const int64_t step : {10, 20, 30}) {
    fs::remove(state_file_of(run_ / "checkpoints" / model_file_name(step)));
  }
  EXPECT_THAT(find("auto"),
              AllOf(HasSubstr("its checkpoints hold models alone"),
                    HasSubstr("step0000030.state.safetensors, is missing"),
                    HasSubstr("--pretrained " + (run_ / "checkpoints/step0000030").string())));
  write_tiny(run_ / "checkpoints", TinyRun(1), 20);
  for (const std::filesystem::path& name : {std::filesystem::path("auto"), run_}) {
    EXPECT_THAT(find(name),
                AllOf(HasSubstr("a model of step 30 alone, newer than the checkpoint of step 20"),
                      HasSubstr("--resume " + (run_ / "checkpoints/step0000020").string())));
  }
  EXPECT_EQ(find(run_ / "checkpoints/step0000020.safetensors"), "20");
  write_tiny(run_ / "checkpoints", TinyRun(1), 30);
  EXPECT_EQ(find("auto"), "30");
}

TEST_F(FindResumePoint, WhatIsNoneIsRefused) {
  EXPECT_THAT(find(dir_ / "nowhere"), HasSubstr("there is no checkpoint at "));
  fs::create_directory(dir_ / "empty");
  EXPECT_THAT(find(dir_ / "empty"), HasSubstr("no stepN.safetensors with its state"));
  fs::copy_file(run_ / "checkpoints/step0000010.safetensors", dir_ / "best.safetensors");
  EXPECT_THAT(find(dir_ / "best.safetensors"), HasSubstr("--pretrained"));
}

constexpr const char* kData = "0123456789abcdef";

// Resumes the tiny run with a command line. Returns the error, or "accepted: ..." and the resulting
// settings.
std::string kept(const std::string& line, int64_t ranks = 2, const std::string& data = kData) {
  const Options options = options_of(line);
  try {
    const RunRequest request = request_of_resumed_run(
        make_run_request(options), options, data, testing::tiny_identity(), ranks);
    const BatchDivision batch = divide_batch(request.batch, request.device, ranks, 1);
    return fmt::format(
        "accepted: B {} A {} S {} G {} seed {} start {}",
        batch.images,
        batch.micro_steps,
        batch.shards,
        batch.bn_groups,
        fmt::format("{}/{}/{}", request.seeds.run, request.seeds.order, request.seeds.weights),
        request.start_epoch);
  } catch (const Error& error) {
    return fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
  }
}

TEST(KeepRun, TakesTheRunFromTheCheckpoint) {
  const std::string all = "accepted: B 64 A 2 S 8 G 4 seed 7/8/9 start 1";
  for (const int64_t ranks : {1, 2, 4, 8}) EXPECT_EQ(kept("", ranks), all);
  EXPECT_EQ(kept("--global-batch-size 64 --batches-per-allreduce 2 --shards 8 --bn-groups 4 "
                 "--seed 7 --start-epoch 1 -b 16"),
            all);
  EXPECT_EQ(kept("--epochs 9 --lr 1 --max-steps 7"), all);
}

TEST(KeepRun, AFlagThatDiffersIsRefusedWithBothValues) {
  const std::string has = ", the checkpoint's run has ";
  EXPECT_EQ(kept("--shards 4"), "4: --shards is 4" + has + "8");
  EXPECT_EQ(kept("--bn-groups 2"), "4: --bn-groups is 2" + has + "4");
  EXPECT_EQ(kept("--sync-bn"), "4: --sync-bn, or --bn-groups is 1" + has + "4");
  EXPECT_EQ(kept("--batches-per-allreduce 1"), "4: --batches-per-allreduce is 1" + has + "2");
  EXPECT_EQ(kept("--global-batch-size 32"), "4: --global-batch-size is 32" + has + "64");
  EXPECT_EQ(kept("--seed 8"), "4: --seed is 8" + has + "7");
  EXPECT_EQ(kept("--seed-order 7"), "4: --seed-order is 7" + has + "8");
  EXPECT_EQ(kept("--seed-weights 7"), "4: --seed-weights is 7" + has + "9");
  EXPECT_EQ(kept("--start-epoch 2"), "4: --start-epoch is 2" + has + "1");
  EXPECT_EQ(kept("-b 16", 4), "4: -b 16 makes 128 images per step on 4 ranks" + has + "64");
  EXPECT_EQ(kept("", 2, "other"),
            "4: the data have digest other, those of the checkpoint's run 0123456789abcdef");
}

TEST(KeepRun, MoreRanksThanShardsAreAUsageError) {
  EXPECT_EQ(kept("", 9), "2: 9 ranks are too many for the checkpoint's run");
}

TEST(Differences, NameEachSettingWithBothValues) {
  RunIdentity now = testing::tiny_identity();
  EXPECT_THAT(differences(now, testing::tiny_identity()), ElementsAre());
  now.environment["isa"] = "x86-64-v4";
  now.settings["lr"] = "0.2";
  now.settings.erase("momentum");
  EXPECT_THAT(
      differences(now, testing::tiny_identity()),
      ElementsAre(
          "isa is x86-64-v4, was x86-64-v3", "lr is 0.2, was 0.1", "momentum is nothing, was 0.9"));
  now = testing::tiny_identity();
  now.settings["lr"] = "1e-1";
  EXPECT_THAT(differences(now, testing::tiny_identity()), ElementsAre());
}

TEST(Differences, EpochsHaveANoteOfTheirOwn) {
  RunIdentity now = testing::tiny_identity();
  RunIdentity before = testing::tiny_identity();
  now.settings["epochs"] = "8";
  before.settings["epochs"] = "4";
  EXPECT_THAT(differences(now, before), ElementsAre());
}

// Programs that recorded no epochs counted cuts from epoch 0.
TEST(Differences, NameTheBeginningOfCutsBehindAWarmUp) {
  RunIdentity now = testing::tiny_identity();
  for (const auto& [name, value] : {std::pair{"lr-scheduler", "step"},
                                    std::pair{"warmup-epochs", "2"},
                                    std::pair{"warmup-prefix", "true"}}) {
    now.settings[name] = value;
  }
  const RunIdentity earlier = now;
  now.settings["epochs"] = "8";
  EXPECT_THAT(differences(now, now), ElementsAre());
  EXPECT_THAT(differences(now, earlier), ElementsAre("warmup-prefix is true, was false"));
  now.settings["warmup-prefix"] = "false";
  EXPECT_THAT(differences(now, earlier), ElementsAre());
  for (const auto& [name, value] :
       {std::pair{"lr-scheduler", "cosine"}, std::pair{"warmup-epochs", "0"}}) {
    RunIdentity other = earlier;
    other.settings[name] = value;
    RunIdentity resumed = other;
    resumed.settings["epochs"] = "8";
    EXPECT_THAT(differences(resumed, other), ElementsAre()) << name;
  }
}

// Resumes a run of two steps per epoch after step 6 with 8 epochs; it had `epochs`.
std::string epochs_note(const std::string& line,
                        const std::string& epochs = "4",
                        int64_t steps = 6) {
  const RunRequest request = make_run_request(options_of("--epochs 8 --lr 0.1 " + line));
  const ResolvedRun run{.request = request,
                        .batch = divide_batch(request.batch, request.device, 1, 1)};
  CheckpointRecord before{.run = testing::tiny_identity(), .position = {}, .model_digest = {}};
  before.position.steps = before.position.applied = steps;
  before.position.schedule = ScheduleState{.factor = 0.5};
  if (!epochs.empty()) before.run.settings["epochs"] = epochs;
  return note_on_epochs(run, 2, before).value_or("none");
}

TEST(NoteOnEpochs, NamesTheRatesThatFollow) {
  const std::string what = "note: epochs is 8, was 4 in the checkpoint's run: the rate ";
  EXPECT_EQ(epochs_note("--lr-scheduler cosine"),
            what + "goes on at 0.06913417, not at 0.01464466");
  EXPECT_EQ(epochs_note("--lr-scheduler linear"), what + "goes on at 0.0625, not at 0.025");
  EXPECT_EQ(epochs_note("--lr-scheduler poly --poly-power 2"),
            what + "goes on at 0.0390625, not at 0.00625");
  EXPECT_THAT(epochs_note("--lr-scheduler onecycle"), HasSubstr(what + "goes on at 0.09"));
  EXPECT_THAT(epochs_note("--lr-scheduler triangular"), HasSubstr(what + "goes on at 0.0"));
  EXPECT_EQ(epochs_note("--lr-scheduler cosine", "4", 8), what + "goes on at 0.05, not at 0")
      << "of a finished run";
  EXPECT_EQ(epochs_note("--lr-scheduler cosine --warmup-epochs 4"),
            what + "differs from step 10 on");
  EXPECT_EQ(epochs_note("--lr-scheduler triangular --triangular-peak 1", "7.9", 3), "none")
      << "as many steps";
}

TEST(NoteOnEpochs, IsLeftOutWhereNoRateChanges) {
  for (const char* line : {"--lr-scheduler const",
                           "--lr-scheduler step --lr-step-size 2",
                           "--lr-scheduler multistep --lr-milestones 2,5",
                           "--lr-scheduler plateau",
                           "--lr-scheduler cosine --min-lr 0.1",
                           "--warmup-epochs 2"}) {
    EXPECT_EQ(epochs_note(line), "none") << line;
  }
  for (const char* was : {"8", "8.0", "", "nan", "-1", "0", "1e300", "text"}) {
    EXPECT_EQ(epochs_note("--lr-scheduler cosine", was), "none") << was;
  }
  EXPECT_THAT(epochs_note("--lr-scheduler plateau --warmup-epochs 1 --warmup-method frozen-cosine"),
              HasSubstr("the rate goes on at 0.0"));
  EXPECT_THAT(epochs_note("--lookahead --lookahead-variant airbench"), HasSubstr("Lookahead"));
}

TEST(Differences, ALongValueIsComparedWhole) {
  RunIdentity now = testing::tiny_identity();
  now.settings["param-groups"] = std::string(200, 'a') + "\\d";
  EXPECT_THAT(differences(now, now), ElementsAre());
}

TEST(Differences, NameTheOrderOfSumsWhereItIsKnown) {
  RunIdentity now = testing::tiny_identity();
  RunIdentity before = testing::tiny_identity();
  now.environment["algorithm"] = "none";
  EXPECT_THAT(differences(now, before), ElementsAre());
  before.environment["algorithm"] = "tree";
  EXPECT_THAT(differences(now, before), ElementsAre("algorithm is none, was tree"));
}

TEST(Differences, NameTheEnginesOfCudnn) {
  RunIdentity now = testing::tiny_identity();
  RunIdentity before = testing::tiny_identity();
  now.environment["cudnn"] = before.environment["cudnn"] = "9.19.0";
  now.environment["plan_choices"] = "5b7e";
  EXPECT_THAT(differences(now, before), ElementsAre("plan_choices is 5b7e, was nothing"));
  before.environment["plan_choices"] = "1234";
  EXPECT_THAT(differences(now, before), ElementsAre("plan_choices is 5b7e, was 1234"));
  now.environment.erase("plan_choices");
  EXPECT_THAT(differences(now, before), ElementsAre("plan_choices is nothing, was 1234"));
}

TEST(IdentityOf, HoldsWhatShapesTheTrainingAndNoMore) {
  const Options options = options_of(
      "--lr 0.5 --epochs 9 -p 3 --fp16-allreduce --seed 4 --seed-order 5 --early-stopping 3");
  const RunRequest request = make_run_request(options);
  ResolvedRun run{.request = request, .batch = divide_batch(request.batch, request.device, 1, 1)};
  const RunIdentity identity = identity_of(run, options, kData, {});
  EXPECT_EQ(identity.settings.at("lr"), "0.5");
  EXPECT_EQ(identity.settings.at("epochs"), "9");
  EXPECT_EQ(identity.environment.at("wire"), "f16");
  EXPECT_EQ(identity.environment.at("algorithm"), "tree");
  EXPECT_FALSE(identity.environment.contains("plan_choices"));  // absent, as in older files
  run.plan_choices = "5b7e";
  EXPECT_EQ(identity_of(run, options, kData, {}).environment.at("plan_choices"), "5b7e");
  EXPECT_EQ(identity.seeds.run, 4U);
  EXPECT_EQ(identity.seeds.order, 5U);
  EXPECT_EQ(identity.seeds.weights, 4U);
  for (const char* name : {"print-freq", "seed", "seed-order", "early-stopping", "batch-size"}) {
    EXPECT_FALSE(identity.settings.contains(name)) << name;
  }
}

}  // namespace
}  // namespace lockstep::trainers::resume_test
