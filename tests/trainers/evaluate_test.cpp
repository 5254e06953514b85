// Evaluation counts every image once, or all ranks abandon it together.
#include "engine/evaluation/evaluate.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "comm/single.h"
#include "data/synthetic.h"
#include "nn/convnet.h"
#include "trainers/loop/evaluation_outputs.h"

namespace lockstep::trainers::evaluate_test {
namespace {

std::shared_ptr<const data::Dataset> forty_images() {
  return std::make_shared<data::Synthetic>(
      data::Synthetic::Options{.images = 40, .shape = {1, 28, 28}});
}

std::optional<Evaluation> evaluation_on(Communicator& ranks,
                                        std::function<bool()> stop,
                                        bool loss_div_batch = false,
                                        const EvaluationOutputs& outputs = {}) {
  Mt19937 rng(1);
  nn::ConvNet model(nn::Init{rng});
  Stream stream;
  EvaluationTask task{.model = model, .dataset = forty_images()};
  task.chunk_images = 10;
  task.stop = std::move(stop);
  task.loss.div_batch = loss_div_batch;
  OutputCollector collector(outputs, *task.dataset);
  task.observer = &collector;
  return evaluate(task, stream, ranks);
}

TEST(Evaluate, CountsEachImageOnceOnAnyNumberOfRanks) {
  comm::SingleCommunicator single;
  const std::optional<Evaluation> alone = evaluation_on(single, {});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->total, 40);
  comm::spawn_ranks(3, [&](Communicator& ranks) {
    const std::optional<Evaluation> together = evaluation_on(ranks, {});
    ASSERT_TRUE(together);
    EXPECT_EQ(together->total, 40);
    EXPECT_EQ(together->correct1, alone->correct1);
    EXPECT_EQ(together->loss, alone->loss);
  });
}

// A user may have frozen the statistics of some batch-norm layers.
TEST(Evaluate, LeavesEachModulesModeAsItWas) {
  class Pair : public nn::Module {
   public:
    explicit Pair(nn::Init init) : trained(init), frozen(init) {
      register_module("trained", trained);
      register_module("frozen", frozen);
    }
    Var forward(const Var& x) override { return trained.forward(x); }

    nn::ConvNet trained, frozen;
  };
  Mt19937 rng(1);
  Pair model(nn::Init{rng});
  model.frozen.train(false);
  comm::SingleCommunicator single;
  Stream stream;
  ASSERT_TRUE(evaluate({.model = model, .dataset = forty_images()}, stream, single));
  EXPECT_TRUE(model.training());
  EXPECT_TRUE(model.trained.training());
  EXPECT_FALSE(model.frozen.training());
}

std::string text_of(Mistakes mistakes) {
  add_pictures(*forty_images(), mistakes);
  return to_json(mistakes);
}

TEST(Evaluate, FindsTheSameMistakesOnAnyNumberOfRanks) {
  comm::SingleCommunicator single;
  Mistakes alone;
  const auto evaluation = evaluation_on(single, {}, false, {.mistakes = &alone});
  ASSERT_EQ(alone.classes, 10);
  int64_t all = 0, right = 0;
  for (int64_t label = 0; label < 10; ++label) {
    for (int64_t said = 0; said < 10; ++said) {
      const int64_t count = alone.confusion[static_cast<size_t>(10 * label + said)];
      all += count;
      right += label == said ? count : 0;
    }
  }
  EXPECT_EQ(all, 40);
  EXPECT_EQ(right, evaluation->correct1);
  ASSERT_EQ(alone.worst.size(), Mistakes::kWorst);
  for (size_t i = 0; i < alone.worst.size(); ++i) {
    const Mistake& mistake = alone.worst[i];
    EXPECT_EQ(mistake.label, forty_images()->label(mistake.index));
    EXPECT_NE(mistake.label, mistake.predicted);
    if (i > 0) {
      EXPECT_LE(mistake.loss, alone.worst[i - 1].loss);
    }
  }
  const std::string text = text_of(alone);
  comm::spawn_ranks(3, [&](Communicator& ranks) {
    Mistakes together;
    ASSERT_TRUE(evaluation_on(ranks, {}, false, {.mistakes = &together}));
    EXPECT_EQ(text_of(together), text);
  });
  const std::optional<Mistakes> read = mistakes_of(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), text);
  EXPECT_TRUE(read->pictures.front().starts_with("iVBORw0KGgo"));  // a PNG file's signature
  EXPECT_FALSE(mistakes_of(text.substr(0, text.size() / 2)));
  Mistakes hostile = *read;
  hostile.pictures[0] = "\"><script>";
  EXPECT_FALSE(mistakes_of(to_json(hostile)));
}

TEST(Evaluate, CollectsTheSameLogitsOnAnyNumberOfRanks) {
  comm::SingleCommunicator single;
  Safetensors alone;
  const auto evaluation = evaluation_on(single, {}, false, {.logits = &alone});
  ASSERT_TRUE(evaluation);
  const Tensor& logits = alone.tensors.at("logits");
  const Tensor& labels = alone.tensors.at("labels");
  ASSERT_EQ(logits.shape(), Shape({40, 10}));
  int64_t correct = 0;
  for (int64_t i = 0; i < 40; ++i) {
    const float* const row = logits.data<float>() + i * 10;
    const int64_t label = labels.data<int64_t>()[i];
    EXPECT_EQ(label, forty_images()->label(i));
    correct += std::max_element(row, row + 10) - row == label ? 1 : 0;
  }
  EXPECT_EQ(correct, evaluation->correct1);
  comm::spawn_ranks(3, [&](Communicator& ranks) {
    Safetensors together;
    ASSERT_TRUE(evaluation_on(ranks, {}, false, {.logits = &together}));
    EXPECT_EQ(together.tensors.size(), ranks.rank() == 0 ? 2U : 0U);
    if (ranks.rank() != 0) return;
    for (const auto& [name, want] : alone.tensors) {
      const Tensor& got = together.tensors.at(name);
      ASSERT_EQ(got.shape(), want.shape());
      EXPECT_EQ(std::memcmp(got.bytes(), want.bytes(), want.nbytes()), 0) << name;
    }
  });
}

TEST(LogitCollector, WidensEachType) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
    Tensor logits = Tensor::empty({2, 2}, dtype);
    Tensor labels = Tensor::empty({2}, Dtype::kI32);
    const float values[] = {1.5F, -0.0F, std::numeric_limits<float>::infinity(), -3};
    for (size_t i = 0; i < 4; ++i) {
      if (dtype == Dtype::kF32) logits.data<float>()[i] = values[i];
      if (dtype == Dtype::kF16) logits.data<Half>()[i] = Half(values[i]);
      if (dtype == Dtype::kBF16) logits.data<BFloat16>()[i] = BFloat16(values[i]);
    }
    labels.data<int32_t>()[0] = 7;
    labels.data<int32_t>()[1] = -1;
    LogitCollector collector;
    collector.add(logits, labels);
    comm::SingleCommunicator single;
    const Safetensors all = collector.over_ranks({.dataset_size = 2, .chunk_images = 5}, single);
    EXPECT_EQ(std::memcmp(all.tensors.at("logits").bytes(), values, sizeof(values)), 0);
    EXPECT_EQ(all.tensors.at("labels").data<int64_t>()[0], 7);
    EXPECT_EQ(all.tensors.at("labels").data<int64_t>()[1], -1);
  }
}

TEST(MistakeFinder, ReadsLogitsOfEachTypeAndCountsNoNan) {
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
    MistakeFinder finder(3);
    Tensor logits = Tensor::empty({3, 3}, dtype);
    Tensor labels = Tensor::empty({3}, Dtype::kI32);
    Tensor indices = Tensor::empty({3}, Dtype::kI64);
    Tensor losses = Tensor::empty({3}, Dtype::kF32);
    const float values[] = {1, 5, 5, 7, -1, 2, 0, kNan, 0};
    for (size_t i = 0; i < 9; ++i) {
      if (dtype == Dtype::kF32) logits.data<float>()[i] = values[i];
      if (dtype == Dtype::kF16) logits.data<Half>()[i] = Half(values[i]);
      if (dtype == Dtype::kBF16) logits.data<BFloat16>()[i] = BFloat16(values[i]);
    }
    for (int i = 0; i < 3; ++i) {
      labels.data<int32_t>()[i] = 0;
      indices.data<int64_t>()[i] = 20 + i;
      losses.data<float>()[i] = 1;
    }
    finder.add({logits, labels, indices, losses});
    comm::SingleCommunicator single;
    const Mistakes found = finder.over_ranks(single);
    EXPECT_EQ(found.confusion, (std::vector<int64_t>{1, 1, 0, 0, 0, 0, 0, 0, 0}));
    ASSERT_EQ(found.worst.size(), 1U);
    EXPECT_EQ(found.worst[0].index, 20);
    EXPECT_EQ(found.worst[0].predicted, 1);
  }
}

// The evaluation has four batches of ten images.
TEST(Evaluate, DividesABatchsLossByItsImagesWhereAsked) {
  comm::SingleCommunicator single;
  const double loss = evaluation_on(single, {})->loss;
  EXPECT_NEAR(evaluation_on(single, {}, true)->loss, loss / 10, 1e-12 * loss);
}

TEST(Evaluate, OneRankThatStopsEndsItForAll) {
  comm::spawn_ranks(2, [](Communicator& ranks) {
    int asked = 0;
    const auto stop = [&] { return ranks.rank() == 1 && ++asked == 2; };
    Safetensors logits;
    EXPECT_FALSE(evaluation_on(ranks, stop, false, {.logits = &logits}));
    EXPECT_TRUE(logits.tensors.empty());
    EXPECT_EQ(asked, ranks.rank() == 1 ? 2 : 0);
  });
}

// Otherwise a rank that was asked would wait for the others' last batches, until the deadline.
TEST(Evaluate, OneRankStopsTheOthersBeforeTheirNextBatch) {
  comm::spawn_ranks(2, [](Communicator& ranks) {
    int rounds = 0;
    EXPECT_FALSE(evaluation_on(ranks, [&] { return ++rounds == 1 && ranks.rank() == 1; }));
    EXPECT_EQ(rounds, 1);
  });
}

}  // namespace
}  // namespace lockstep::trainers::evaluate_test
