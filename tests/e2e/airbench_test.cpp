// train_resnet -a airbench94 on the built-in shapes. The network is wide, so the runs take few
// steps.
#include "core/safetensors.h"
#include "tests/e2e/training_runs.h"
#include "tests/support/close.h"

namespace lockstep::testing::airbench_test {
namespace {

constexpr const char* kFilters = "0.weight";

class Airbench : public ::testing::Test {
 protected:
  // Trains with sixteen images per step in four shards, for three steps unless `more` says
  // otherwise.
  ProgramResult run(int ranks, const std::string& name, const Arguments& more = {}) const {
    Arguments line = {"train_resnet", "-a", "airbench94", "--max-steps", "3", "--no-eval"};
    line.insert(line.end(), {"--global-batch-size", "16", "--shards", "4", "--bn-groups", "4"});
    line.insert(line.end(), {"-p", "1", "-j", "1", "-o", (dir_ / name).string()});
    line.insert(line.end(), more.begin(), more.end());
    return run_ranks(ranks, line);
  }
  void train(int ranks, const std::string& name, const Arguments& more = {}) const {
    const ProgramResult result = run(ranks, name, more);
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }
  Tensor tensor(const std::string& name, const std::string& key) const {
    return read_safetensors(weights(dir_ / name)).tensors.at(key);
  }

  const TempDir dir_;
};

TEST_F(Airbench, HasTheSameBitsOnOneTwoAndFourRanksAndAfterAResume) {
  train(1, "one");
  for (const int ranks : {2, 4}) {
    const std::string name = std::to_string(ranks);
    train(ranks, name);
    expect_same_bits(dir_ / "one", dir_ / name);
  }
  train(2, "parts", {"--max-steps", "2"});
  train(1, "parts", {"--resume", "auto"});
  const ProgramResult difference =
      run_program({"lockstep", "diff", weights(dir_ / "one"), weights(dir_ / "parts")});
  EXPECT_EQ(difference.exit_code, 0) << said(difference);
}

TEST_F(Airbench, TrainsIn16BitsWithTheSameBitsOnTwoRanks) {
  for (const std::string level : {"O1", "O2"}) {
    const Arguments precision = {"--opt-level", level, "--dtype", "bf16", "--max-steps", "2"};
    train(1, level + "-1", precision);
    train(2, level + "-2", precision);
    expect_same_bits(dir_ / (level + "-1"), dir_ / (level + "-2"));
    const std::vector<nlohmann::json> curve = read_metrics(dir_ / (level + "-1"));
    EXPECT_NEAR(curve.at(0).at("loss").get<double>(), 2.3, 0.2) << level;
  }
}

// The filters depend only on the images and their normalization. No step changes them, and weights
// of another training replace them.
TEST_F(Airbench, FitsItsFiltersToTheImagesOnce) {
  train(1, "first", {"--max-steps", "1"});
  train(1, "third");
  train(1, "seeded", {"--max-steps", "1", "--seed", "9"});
  train(1, "plain", {"--max-steps", "1", "--normalize", "none"});
  train(1,
        "tuned",
        {"--max-steps", "1", "--normalize", "none", "--pretrained", weights(dir_ / "first")});
  const Tensor filters = tensor("first", kFilters);
  EXPECT_TRUE(same_bits(tensor("third", kFilters), filters));
  EXPECT_TRUE(same_bits(tensor("seeded", kFilters), filters));
  EXPECT_FALSE(same_bits(tensor("plain", kFilters), filters));
  EXPECT_TRUE(same_bits(tensor("tuned", kFilters), filters));
  EXPECT_FALSE(same_bits(tensor("third", "0.bias"), tensor("first", "0.bias")));
  const Tensor gains = tensor("third", "4.norm2.weight");
  EXPECT_GT(gains.numel(), 0);
  for (const float gain : gains.span<float>()) EXPECT_EQ(gain, 1);
}

TEST_F(Airbench, EvaluatesItsWeightsAndSavesNoStateOfWhatIsFrozen) {
  train(1, "run", {"--max-steps", "1", "--momentum", "0.9"});
  const Safetensors state =
      read_safetensors(dir_ / "run" / "checkpoints" / "step0000001.state.safetensors");
  EXPECT_TRUE(state.tensors.contains("0.bias.momentum_buffer"));
  EXPECT_FALSE(state.tensors.contains("0.weight.momentum_buffer"));
  EXPECT_FALSE(state.tensors.contains("2.norm1.weight.momentum_buffer"));
}

}  // namespace
}  // namespace lockstep::testing::airbench_test
