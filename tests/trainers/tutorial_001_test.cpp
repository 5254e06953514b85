// Items of tutorial 001 (Apex). The number in a test's name is the number of the item.
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "data/synthetic.h"
#include "engine/settings/precision_config.h"
#include "kernels/linear/linear.h"
#include "kernels/pool/avg_pool2d.h"
#include "nn/convnet.h"
#include "tests/support/float_types.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/loop/training_parts.h"
#include "trainers/report/tutorial_lines.h"

namespace lockstep::trainers::tutorial_001_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::options_of;
using testing::refusal;
using testing::usage_error;

TEST(Tutorial, Item1_3StringsAndValuesAreTheSameAndAllButOneCombinationIsTaken) {
  const auto config_of = [](const std::string& line) {
    return make_precision_config(options_of(line));
  };
  EXPECT_TRUE(config_of("--opt-level O3 --keep-batchnorm-fp32 True").keep_batchnorm_fp32);
  EXPECT_TRUE(config_of("--opt-level O3 --keep-batchnorm-fp32=1").keep_batchnorm_fp32);
  EXPECT_EQ(config_of("--opt-level O2 --loss-scale 128.0").loss_scaling->initial, 128);
  EXPECT_TRUE(config_of("--opt-level O2 --loss-scale dynamic").loss_scaling->dynamic);
  const auto error = usage_error([&] { config_of("--opt-level O2 --keep-batchnorm-fp32 False"); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->why(), HasSubstr("16-bit copies that Apex makes of them would only lose"));
}

// An f16 accumulator would stop at 0.25, where a term is less than half an ulp.
TEST(Tutorial, Item1_4A16BitSumOf4096TermsIsMadeInF32) {
  constexpr int64_t kTerms = 4096;
  Stream stream;
  const Shards one = Shards::single(1);
  Tensor terms = Tensor::empty({1, kTerms}, Dtype::kF16);
  Tensor ones = Tensor::empty({1, kTerms}, Dtype::kF16);
  for (int64_t i = 0; i < kTerms; ++i) {
    testing::set(terms, i, 1e-4);
    testing::set(ones, i, 1);
  }
  const double exact = kTerms * testing::get(terms, 0);  // the exact sum, given 1e-4 rounded to f16
  EXPECT_NEAR(exact, 0.4096, 1e-4);
  Tensor sum = Tensor::empty({1, 1}, Dtype::kF16);
  kernels::linear_forward(stream, one, terms, ones, {}, sum);
  EXPECT_NEAR(testing::get(sum, 0), exact, 0x1p-12);

  Tensor mean = Tensor::empty({1, 1}, Dtype::kF16);
  kernels::global_avg_pool_forward(stream, one, terms.view({1, 1, 64, 64}), mean);
  EXPECT_NEAR(testing::get(mean, 0) * kTerms, exact, 0x1p-12);

  Tensor gradient = Tensor::empty({1, 1}, Dtype::kF32);
  Tensor bias_gradient = Tensor::empty({1, 1}, Dtype::kF32);
  const Shards rows = Shards::single(kTerms);
  kernels::linear_backward_weight(
      stream, rows, ones.view({kTerms, 1}), terms.view({kTerms, 1}), gradient, bias_gradient);
  EXPECT_NEAR(*gradient.data<float>(), exact, 1e-6);
  EXPECT_NEAR(*bias_gradient.data<float>(), exact, 1e-6);
}

TEST(Tutorial, Item1_5MessageSizeIsABucketsElements) {
  const auto caps_of = [](const std::string& line) {
    return make_exchange_config(options_of(line)).caps;
  };
  EXPECT_EQ(caps_of("--message-size 10000000").bytes, 40'000'000);
  EXPECT_EQ(caps_of("--message_size=1000").first_bytes, 4000);
  EXPECT_EQ(caps_of("--message-size 1000 --fp16-allreduce").bytes, 2000);
  const auto both = usage_error([&] { caps_of("--message-size 9 --bucket-cap-mb 1"); });
  ASSERT_TRUE(both);
  EXPECT_STREQ(both->what(), "--message-size and --bucket-cap-mb contradict each other");
  EXPECT_FALSE(make_exchange_config(options_of("--delay-allreduce")).overlap);
}

TEST(Tutorial, Item1_5TheOtherArgumentsOfApexsDdpAreAnswered) {
  const Options options = options_of(
      "--gradient_average True --allreduce_trigger_params x --allreduce-always-fp32 "
      "--num_allreduce_streams 2 --retain_allreduce_buffers");
  EXPECT_THAT(options.notes,
              ElementsAre(HasSubstr("gradients are averaged"),
                          HasSubstr("--delay-allreduce"),
                          HasSubstr("--fp16-allreduce sends them in f16"),
                          HasSubstr("in one order on all ranks"),
                          HasSubstr("always lie in their buckets")));
  for (const char* line : {"--gradient-average False", "--no-gradient-average"}) {
    EXPECT_THAT(refusal(line), HasSubstr("--lr times the ranks and --weight-decay divided by them"))
        << line;
  }
}

TEST(Tutorial, Item1_10SwitchesOfOtherTrainersAreAnswered) {
  EXPECT_FALSE(make_run_request(options_of("--no-tensorboard")).tensorboard);
  EXPECT_THAT(refusal("--log-wandb"), HasSubstr("--csv FILE"));
  EXPECT_THAT(options_of("--no-pin-memory").notes,
              ElementsAre(HasSubstr("--no-pin-memory (timm) changes nothing")));
  EXPECT_THAT(refusal("--no-gpu"), HasSubstr("unknown flag --no-gpu"));
}

TEST(Tutorial, Item1_12StartAndEndLinesAreTheScripts) {
  ResolvedRun run{.batch = {.ranks = 2, .images = 4}};
  run.request.precision = make_precision_config(options_of("--opt-level O2"));
  EXPECT_THAT(apex_start_lines(run),
              ElementsAre("opt_level = O2",
                          "keep_batchnorm_fp32 = True",
                          "loss_scale = dynamic",
                          "### global rank of curr node: 0",
                          "### global rank of curr node: 1"));
  run.batch.ranks = 1;
  run.request.precision = make_precision_config(options_of("--opt-level O3 --loss-scale 128.0"));
  EXPECT_THAT(apex_start_lines(run),
              ElementsAre("opt_level = O3",
                          "keep_batchnorm_fp32 = False",
                          "loss_scale = 128.0",
                          "### global rank of curr node: 0"));
  run.request.precision = make_precision_config(options_of(""));
  EXPECT_EQ(apex_start_lines(run)[2], "loss_scale = 1.0");
  EXPECT_EQ(apex_end_line(2 * 3600 + 3 * 60 + 4.5),
            "### Training Time: 2.00 hrs 3.00 mins 4.50 secs | 7384.50 secs");
}

// Forwards all calls, and counts the all-reduces of losses and the gatherings of times.
class CountingPeers final : public Communicator {
 public:
  explicit CountingPeers(Communicator& peers) : peers_(peers) {}

  int metric_sums = 0;

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  void barrier() override { peers_.barrier(); }
  void broadcast(std::span<std::byte> bytes, int root) override { peers_.broadcast(bytes, root); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    peers_.all_gather(mine, all);
  }
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) override {
    return peers_.start_all_reduce(what);
  }
  void all_reduce_sum(std::span<float> values) override {
    ++metric_sums;
    peers_.all_reduce_sum(values);
  }
  void all_reduce_sum(std::span<int64_t> values) override { peers_.all_reduce_sum(values); }

 private:
  Communicator& peers_;
};

// Returns how often the losses of 40 steps on two ranks are summed over the ranks.
int metric_sums(int64_t print_freq) {
  ResolvedRun run{.batch = {.ranks = 2, .images = 8, .shards = 2, .bn_groups = 2}};
  RunRequest& request = run.request;
  request.arch = "convnet";
  request.dataset = "synthetic";
  request.test.batch = 4;
  request.epochs = 1;
  request.eval_freq = 1000;
  request.optimizer.lr = 0.01;
  request.print_freq = print_freq;
  const auto images = [](int64_t count) {
    return std::make_shared<data::Synthetic>(
        data::Synthetic::Options{.images = count, .classes = 10, .shape = {1, 28, 28}});
  };
  const data::DatasetPair data = {.train = images(320), .test = images(4)};
  int counted = 0;
  comm::spawn_ranks(2, [&](Communicator& ranks) {
    CountingPeers peers(ranks);
    Stream stream;
    Mt19937 rng(3);
    nn::ConvNet model(nn::Init{rng});
    Console console({.prints = false});
    const TrainingParts parts{step_inputs(run, data, peers, stream, model), run, console};
    TrainingObserver observer;
    Training training(parts, training_plan(parts), observer);
    const TrainingResult result = training.run();
    EXPECT_EQ(result.steps, 40);
    if (ranks.rank() == 0) counted = peers.metric_sums;
  });
  return counted;
}

TEST(Tutorial, Item1_13MetricsAreSummedOverRanksOnceAPrintInterval) {
  EXPECT_EQ(metric_sums(10), 1 + 4);  // after the first step, then after every tenth
  EXPECT_EQ(metric_sums(5), 1 + 8);
  EXPECT_EQ(metric_sums(1), 40);
}

TEST(Tutorial, Item1_14PretrainedWithoutAFileIsAnswered) {
  EXPECT_EQ(refusal("--pretrained"),
            "--pretrained needs a value | weights are read from a file: nothing is downloaded | "
            "--pretrained FILE; docs/evaluation.md makes one from torchvision's weights");
  EXPECT_THAT(refusal("--pretrained --epochs 1"), HasSubstr("nothing is downloaded"));
  const Options options = options_of("--b 208", {}, Program::kTrainResnet);
  EXPECT_EQ(options.integer("batch-size"), 208);
}

}  // namespace
}  // namespace lockstep::trainers::tutorial_001_test
