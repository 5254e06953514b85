#include "trainers/checkpoint/checkpoint_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/safetensors.h"
#include "tests/support/close.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"

namespace lockstep::trainers::checkpoint_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::read_text;
using testing::same_bits;
using testing::TempDir;
using testing::tiny_identity;
using testing::TinyRun;
using testing::write_text;
using testing::write_tiny;

// The text of the error for the file, or "accepted".
std::string refusal(const fs::path& file) {
  try {
    read_checkpoint(file);
  } catch (const CheckpointError& error) {
    return format_error(error);
  }
  return "accepted";
}

void restore(const Checkpoint& from, TinyRun& run) {
  EXPECT_EQ(mismatches(run.model.state(), from.model), std::vector<std::string>());
  EXPECT_EQ(mismatches(run.optimizer.state(), from.optimizer), std::vector<std::string>());
  copy_into(run.model.state(), from.model);
  copy_into(run.optimizer.state(), from.optimizer);
}

TEST(CheckpointFile, ComesBackBitForBit) {
  const TempDir dir;
  const TinyRun run(1);
  const Checkpoint read = read_checkpoint(write_tiny(dir.path(), run, 20));
  TinyRun other(2);
  ASSERT_NE(other.digest(), run.digest());
  restore(read, other);
  for (size_t i = 0; i < run.model.state().size(); ++i) {
    EXPECT_TRUE(same_bits(other.model.state()[i].tensor, run.model.state()[i].tensor))
        << run.model.state()[i].name;
  }
  for (size_t i = 0; i < run.optimizer.state().size(); ++i) {
    EXPECT_TRUE(same_bits(other.optimizer.state()[i].tensor, run.optimizer.state()[i].tensor))
        << run.optimizer.state()[i].name;
  }
}

TEST(CheckpointFile, RecordComesBackWhole) {
  const TempDir dir;
  const CheckpointRecord read = read_checkpoint(write_tiny(dir.path(), TinyRun(1), 20)).record;
  EXPECT_EQ(read.run, tiny_identity());
  const TrainingPosition want = testing::tiny_position(20);
  EXPECT_EQ(read.position.steps, 20);
  EXPECT_EQ(read.position.applied, 19);
  EXPECT_EQ(read.position.epoch, want.epoch);
  EXPECT_EQ(read.position.sums.steps, want.sums.steps);
  EXPECT_EQ(read.position.sums.images, want.sums.images);
  EXPECT_EQ(read.position.sums.loss, want.sums.loss);  // all bits of one third
  EXPECT_EQ(read.position.sums.correct1, want.sums.correct1);
  EXPECT_EQ(read.position.sums.correct5, want.sums.correct5);
  EXPECT_EQ(read.position.best.correct1, want.best.correct1);
  EXPECT_EQ(read.position.best.correct5, want.best.correct5);
  EXPECT_EQ(read.position.best.total, want.best.total);
  EXPECT_EQ(read.position.best.loss, want.best.loss);
  EXPECT_EQ(read.position.best_epoch, want.best_epoch);
  EXPECT_EQ(read.position.schedule, want.schedule);
  EXPECT_EQ(read.position.early_stopping, want.early_stopping);
}

TEST(CheckpointRecord, OfAnEarlierProgramHasOneSeed) {
  Texts metadata = to_metadata(
      {.run = tiny_identity(), .position = testing::tiny_position(20), .model_digest = {}});
  for (const char* key : {"seed_order", "seed_weights", "early_stopping"}) metadata.erase(key);
  const CheckpointRecord record = record_of(metadata, "file");
  EXPECT_EQ(record.run.seeds, (Seeds{.run = 7, .order = 7, .weights = 7}));
  EXPECT_EQ(record.position.early_stopping, std::nullopt);
}

TEST(CheckpointRecord, SaysWhichEnginesOfCudnnARunHad) {
  CheckpointRecord record{
      .run = tiny_identity(), .position = testing::tiny_position(20), .model_digest = {}};
  EXPECT_FALSE(to_metadata(record).contains("plan_choices"));
  record.run.environment["cudnn"] = "9.19.0";
  record.run.environment["plan_choices"] = "5b7e";
  EXPECT_EQ(record_of(to_metadata(record), "file").run, record.run);
}

TEST(CheckpointFile, ModelFileHoldsTheModelsNamesAndNoOthers) {
  const TempDir dir;
  const TinyRun run(1);
  const Safetensors model = read_safetensors(write_tiny(dir.path(), run, 1180));
  EXPECT_TRUE(fs::exists(dir / "step0001180.safetensors"));
  EXPECT_TRUE(fs::exists(dir / "step0001180.state.safetensors"));
  EXPECT_EQ(mismatches(run.model.state(), model.tensors), std::vector<std::string>());
  EXPECT_EQ(model.metadata.at("format"), "pt");
  EXPECT_EQ(model.metadata.at("model_digest"), to_hex(state_digest(run.model)));
}

TEST(CheckpointFile, AMissingFileIsNamed) {
  const TempDir dir;
  const fs::path file = write_tiny(dir.path(), TinyRun(1), 20);
  EXPECT_THAT(refusal(dir / "step0000021.safetensors"), HasSubstr("there is no such file"));
  fs::remove(state_file_of(file));
  EXPECT_THAT(
      refusal(file),
      AllOf(HasSubstr("step0000020.state.safetensors, is missing"), HasSubstr("--pretrained")));
}

TEST(CheckpointFile, FilesOfTwoCheckpointsAreNoPair) {
  const TempDir dir;
  fs::create_directory(dir / "other");
  const fs::path file = write_tiny(dir.path(), TinyRun(1), 20);
  const fs::path other = write_tiny(dir / "other", TinyRun(2), 20);
  fs::copy_file(other, file, fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(file), HasSubstr("it belongs to other weights"));
}

// Rewrites a file with other metadata but without updating the digest.
void edit_metadata(const fs::path& file, const std::string& key, const std::string& value) {
  Safetensors content = read_safetensors(file);
  content.metadata[key] = value;
  write_safetensors(file, content);
}

TEST(CheckpointFile, OtherMajorVersionsAreRefusedByName) {
  const TempDir dir;
  for (const bool state : {false, true}) {
    const fs::path file = write_tiny(dir.path(), TinyRun(1), 20);
    edit_metadata(state ? state_file_of(file) : file, "format_version", "2.0");
    EXPECT_THAT(refusal(file), HasSubstr("its format has version 2.0, this program reads 1.x"));
  }
}

TEST(CheckpointFile, MetadataIsSealed) {
  const TempDir dir;
  for (const bool state : {false, true}) {
    for (const char* key : {"steps", "digest", "best", "unknown"}) {
      const fs::path file = write_tiny(dir.path(), TinyRun(1), 20);
      edit_metadata(state ? state_file_of(file) : file, key, "21");
      EXPECT_THAT(refusal(file), HasSubstr("its content is not what was written")) << key;
    }
  }
}

TEST(CheckpointFile, EveryTruncationIsRefused) {
  const TempDir dir;
  const fs::path file = write_tiny(dir.path(), TinyRun(1), 20);
  for (const fs::path& torn : {file, state_file_of(file)}) {
    const std::string whole = read_text(torn);
    for (size_t size = 0; size < whole.size(); size += size < 16 ? 1 : 97) {
      write_text(torn, whole.substr(0, size));
      EXPECT_NE(refusal(file), "accepted") << torn << " cut to " << size;
    }
    write_text(torn, whole);
  }
  EXPECT_EQ(refusal(file), "accepted");
}

// Covers the headers, metadata and tensors of both files.
TEST(CheckpointFile, EveryFlippedBitIsRefused) {
  const TempDir dir;
  const fs::path file = write_tiny(dir.path(), TinyRun(1), 20);
  for (const fs::path& damaged : {file, state_file_of(file)}) {
    const std::string whole = read_text(damaged);
    for (size_t at = 0; at < whole.size(); at += at < 16 ? 1 : 37) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
      write_text(damaged, bytes);
      EXPECT_NE(refusal(file), "accepted") << damaged << " byte " << at;
    }
    write_text(damaged, whole);
  }
}

TEST(CheckpointFile, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  const TempDir dir;
  EXPECT_TRUE(list_checkpoints(dir / "absent").empty());
  fs::create_symlink("itself", dir / "itself");
  EXPECT_THROW(list_checkpoints(dir / "itself"), EnvironmentError);
}

TEST(StateTensors, MisfitsAreNamed) {
  const TinyRun run(1);
  FileTensors tensors = file_tensors(run.model.state());
  tensors["fc.weight"] = Tensor::zeros({3, 31}, Dtype::kF32);
  tensors["bn.bias"] = Tensor::zeros({2}, Dtype::kF16);
  tensors.erase("conv.bias");
  tensors["layer4.weight"] = Tensor::zeros({1}, Dtype::kF32);
  const std::vector<std::string> found = mismatches(run.model.state(), tensors);
  EXPECT_THAT(found,
              ::testing::ElementsAre("conv.bias is missing",
                                     "bn.bias is f16, expected f32",
                                     "fc.weight has shape (3,31), expected (3,32)",
                                     "layer4.weight is not expected"));
  EXPECT_EQ(first_of(found),
            "conv.bias is missing; bn.bias is f16, expected f32; fc.weight has shape (3,31), "
            "expected (3,32); and 1 more");
}

}  // namespace
}  // namespace lockstep::trainers::checkpoint_file_test
