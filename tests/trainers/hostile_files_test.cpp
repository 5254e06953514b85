// Malicious files of weights and records, and text from files that would control a terminal. Cases
// are named after the rows of the attack that found them.
#include <array>
#include <bit>
#include <new>
#include <stdexcept>
#include <system_error>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "core/safetensors.h"
#include "engine/state/weights_file.h"
#include "kernels/support/onednn/version.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/options_of.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/checkpoint/resume.h"
#include "trainers/cli/compare_ranks.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/debug/planted_fault.h"
#include "trainers/debug/replay_plan.h"
#include "trainers/options/flag_table.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers::attack_files_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::options_of;
using testing::TempDir;
using testing::tiny_identity;
using testing::tiny_position;
using testing::TinyRun;
using testing::usage_error;
using testing::write_text;

constexpr const char* kClear = "\x1b[2J";  // clears the screen

TEST(OnednnVersions, RanksCompareOnednnsVersionAndInstructionSet) {
  const auto fields = program_fields();
  const auto holds = [](const char* name, const std::string& value) {
    return Contains(
        AllOf(Field(&comm::HandshakeField::name, name),
              Field(&comm::HandshakeField::value, value),
              Field(&comm::HandshakeField::kind, comm::HandshakeField::Kind::kEnvironment)));
  };
  EXPECT_THAT(fields, holds("version of oneDNN", kernels::onednn_version()));
  EXPECT_THAT(fields, holds("instruction set of oneDNN", kernels::onednn_isa()));
  EXPECT_EQ(kernels::onednn_isa().find(':'), std::string::npos);
}

TEST(OnednnVersions, ARunThatGoesOnWithAnotherInstructionSetSaysSo) {
  RunIdentity before = tiny_identity();
  RunIdentity now = before;
  now.environment["onednn_isa"] = "avx2";
  EXPECT_EQ(differences(now, before), std::vector<std::string>()) << "an older file: not known";
  before.environment["onednn_isa"] = "avx512_core";
  EXPECT_EQ(differences(now, before),
            std::vector<std::string>{"onednn_isa is avx2, was avx512_core"});
  CheckpointRecord record{.run = before, .position = tiny_position(20), .model_digest = {}};
  EXPECT_EQ(record_of(to_metadata(record), "file").run, before);
  EXPECT_TRUE(library_versions().contains("onednn_isa"));
}

// Writes a file whose header claims one tensor of a tebibyte.
bool write_huge_weights(const fs::path& file) {
  std::string header =
      R"({"huge":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const auto length = std::bit_cast<std::array<char, 8>>(uint64_t{header.size()});
  write_text(file, std::string(length.begin(), length.end()) + header);
  std::error_code error;
  fs::resize_file(file, 8 + header.size() + (uintmax_t{1} << 40), error);
  return !error;
}

TEST(WeightsHeader, WeightsAreComparedByNameBeforeTheyAreRead) {
  const TempDir dir;
  if (!write_huge_weights(dir / "w.safetensors")) GTEST_SKIP() << "no sparse files here";
  TinyRun run(1);
  WeightsFile weights(dir / "w.safetensors");
  try {
    weights.load_into(run.model, Classifier::kMayStartFresh);
    FAIL() << "it was read";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.why(), HasSubstr("is missing"));
  }
}

TEST(WeightsHeader, WeightsOfATensorBeyondMemoryAreRefused) {
  const TempDir dir;
  if (!write_huge_weights(dir / "w.safetensors")) GTEST_SKIP() << "no sparse files here";
  try {
    read_safetensors(dir / "w.safetensors");
    FAIL() << "it was read";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("out of memory"));
  }
}

TEST(WeightsHeader, ACheckpointThatIsNoneIsRefusedByItsHeader) {
  const TempDir dir;
  const fs::path file = dir / model_file_name(20);
  if (!write_huge_weights(file)) GTEST_SKIP() << "no sparse files here";
  write_text(state_file_of(file), "");
  try {
    read_checkpoint(file);
    FAIL() << "it was read";
  } catch (const CheckpointError& error) {
    EXPECT_EQ(error.why(), "it has no 'format_version'");
  }
}

TEST(WeightsHeader, WeightsThatFitAreReadAsBefore) {
  const TempDir dir;
  const TinyRun source(1);
  TinyRun target(2);
  write_safetensors(dir / "w.safetensors",
                    {.tensors = file_tensors(source.model.state()), .metadata = {}});
  WeightsFile weights(dir / "w.safetensors");
  write_safetensors(dir / "w.safetensors",
                    {.tensors = file_tensors(source.model.state()), .metadata = {{"a", "b"}}});
  EXPECT_THROW(weights.load_into(target.model, Classifier::kMustFit), CheckpointError);
  EXPECT_EQ(WeightsFile(dir / "w.safetensors").load_into(target.model, Classifier::kMustFit).fresh,
            std::nullopt);
  EXPECT_EQ(state_digest(target.model), state_digest(source.model));
}

TEST(OutOfMemory, OutOfMemoryIsTheEnvironmentsFault) {
  const Error error = as_error(std::bad_alloc());
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  EXPECT_EQ(std::string(error.what()), "out of memory");
  EXPECT_THAT(error.why(), HasSubstr("iB"));
  const std::system_error no_thread(
      std::make_error_code(std::errc::resource_unavailable_try_again));
  EXPECT_EQ(as_error(no_thread).code(), ExitCode::kEnvironment);
  EXPECT_EQ(as_error(std::runtime_error("?")).code(), ExitCode::kInternal);
}

TEST(ControlCharacters, ErrorsShowControlCharactersAsText) {
  const std::string text = format_error(DataError(kClear,
                                                  "a\x1b]0;b\x07",
                                                  "\xc2\x9b"
                                                  "2J\xff"));
  EXPECT_EQ(text, "lockstep: error: \\x1b[2J\n  why: a\\x1b]0;b\\x07\n  try: \\xc2\\x9b2J\\xff\n");
  EXPECT_EQ(format_error(DataError("größer · 日本")), "lockstep: error: größer · 日本\n");
}

TEST(ControlCharacters, ADigestOfACheckpointIsPrintable) {
  RunIdentity before = tiny_identity();
  before.data_digest = kClear;
  const Options options = options_of("");
  try {
    request_of_resumed_run(make_run_request(options), options, "0123", before, 1);
    FAIL() << "it was taken";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(std::string(error.what()), AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr(kClear))));
  }
}

TEST(ControlCharacters, WhatAReplayReadsIsPrintable) {
  const TempDir dir;
  const std::string run = R"({"argv":["NAME"],"flags":{},"resumed":null,"ranks":[{}],)"
                          R"("data_digest":"0","run":{"global_batch":8,"micro_steps":1,)"
                          R"("shards":1,"bn_groups":1,"same_bits_on":[1]}})";
  const auto write_run = [&](const std::string& name) {
    write_text(dir / "run.json", std::string(run).replace(run.find("NAME"), 4, name));
  };
  write_text(dir / "numerics.json", R"({"step":3,"what":"\u001b[2J"})");
  write_run("train_convnet");
  EXPECT_EQ(read_replay_plan(dir.path()).trouble, "\\x1b[2J");
  write_run("\\u001b[2J");
  try {
    read_replay_plan(dir.path());
    FAIL() << "it was taken";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(std::string(error.what()), AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr(kClear))));
  }
}

TEST(FaultVariable, AFaultOfAHundredKilobytesIsRefused) {
  for (const std::string& text : {std::string(100'000, 'a'),
                                  "inf:rank=1,step=1,layer=" + std::string(100'000, 'a') + " ",
                                  "kill:rank=1,step=1" + std::string(100'000, ','),
                                  "slow:" + std::string(100'000, '1')}) {
    const auto error = usage_error([&] { parse_fault(text); });
    ASSERT_TRUE(error);
    EXPECT_LT(std::string(error->what()).size(), 200U);
  }
}

TEST(FaultVariable, MisspelledVariablesAreRefused) {
  const auto refusal = [](std::vector<const char*> variables) -> std::string {
    variables.push_back(nullptr);
    const auto error = usage_error([&] { check_variables(variables.data()); });
    return error ? std::string(error->what()) + "; " + error->hint() : "accepted";
  };
  EXPECT_EQ(refusal({"PATH=/bin", "LOCKSTEP_LR=0.1", "LOCKSTEP_FAULT=", "LOCKSTEP_ISA=v3"}),
            "accepted");
  EXPECT_EQ(refusal({"LOCKSTEP_EMULATION_DEVICES=2", "LOCKSTEP_MNIST=/data"}), "accepted");
  EXPECT_EQ(refusal({"LOCKSTEP_EPOCH=3"}),
            "there is no variable LOCKSTEP_EPOCH; LOCKSTEP_EPOCHS, or unset it");
  EXPECT_EQ(refusal({"LOCKSTEP_FUALT=kill:rank=1,step=3"}),
            "there is no variable LOCKSTEP_FUALT; LOCKSTEP_FAULT, or unset it");
  EXPECT_THAT(refusal({"LOCKSTEP_\x1b[2J=3"}), HasSubstr("LOCKSTEP_\\x1b[2J"));
}

}  // namespace
}  // namespace lockstep::trainers::attack_files_test
