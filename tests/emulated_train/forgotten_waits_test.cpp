// Mutants of the engine's own host code: without any one of its waits for an event, some order of
// the streams must give other results.
#include <algorithm>

#include <gtest/gtest.h>

#include "comm/single.h"
#include "comm/staged_exchange.h"
#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::emulation {
static void PrintTo(const EventWait& wait, std::ostream* out) {
  *out << wait.waiter << " waits for " << wait.awaited;
}
}  // namespace lockstep::emulation

namespace lockstep::testing::forgotten_waits_test {
namespace {

using emulation::event_waits;
using emulation::EventWait;
using emulation::forget;
using emulation::reset_runtime;
using emulation::set_stream_order;
using emulation::StreamOrder;

constexpr int kHost = 0, kCompute = 1;  // the first stream that is made
constexpr uint64_t kSeeds = 12;

using Numbers = std::vector<std::vector<float>>;

// What `program` gives in that order of the streams; nothing where it ended in an error.
template <class Program>
Numbers results(Program&& program, StreamOrder order, uint64_t seed, const EventWait* forgotten) {
  reset_runtime();
  set_stream_order(order, seed);
  if (forgotten != nullptr) forget(*forgotten);
  try {
    return program();
  } catch (const Error&) {
    return {};
  }
}

// Whether some order shows that `forgotten` is missing; with nullptr, that anything is wrong.
template <class Program>
bool goes_wrong(Program&& program, const Numbers& want, const EventWait* forgotten) {
  if (results(program, StreamOrder::kLazy, 0, forgotten) != want) return true;
  for (uint64_t seed = 1; seed <= (forgotten != nullptr ? kSeeds : 3); ++seed) {
    if (results(program, StreamOrder::kRandom, seed, forgotten) != want) return true;
  }
  return false;
}

// `needed` and `spare` are all waits that the program makes.
template <class Program>
void expect_each_is_needed(const std::set<EventWait>& needed,
                           const std::set<EventWait>& spare,
                           Program&& program) {
  const Numbers want = results(program, StreamOrder::kEager, 0, nullptr);
  ASSERT_FALSE(want.empty());
  std::set<EventWait> all = needed;
  all.insert(spare.begin(), spare.end());
  EXPECT_EQ(event_waits(), all);
  EXPECT_FALSE(goes_wrong(program, want, nullptr));
  for (const EventWait& wait : needed) {
    EXPECT_TRUE(goes_wrong(program, want, &wait))
        << wait.waiter << " need not wait for " << wait.awaited;
  }
}

// Six steps, then an evaluation of four batches.
Numbers train() {
  trainers::ResolvedRun run = tiny_run(Device::kCuda, 6);
  run.request.print_freq = 100;
  run.request.test.batch = 1;
  const TinyResult result = train_tiny(run);
  Numbers numbers;
  for (const Tensor& tensor : result.weights) {
    if (tensor.dtype() != Dtype::kF32) continue;
    numbers.emplace_back(tensor.span<float>().begin(), tensor.span<float>().end());
  }
  numbers.push_back({static_cast<float>(result.training.final->loss)});
  return numbers;
}

// An evaluation's copies overwrite the batch before last, whose end the host has seen by then.
TEST(ForgottenWaits, OfTrainingChangeItsBits) {
  constexpr int kTraining = 2, kEvaluation = 3;  // their batches' copies
  expect_each_is_needed({{kHost, kCompute},
                         {kHost, kTraining},
                         {kCompute, kTraining},
                         {kCompute, kEvaluation},
                         {kTraining, kCompute}},
                        {{kHost, kEvaluation}, {kEvaluation, kCompute}},
                        train);
}

// Sums to twice what this rank has, so that what comes back differs from what went.
class Doubling : public comm::SingleCommunicator {
 public:
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) override {
    Tensor values = what.values;
    for (float& value : values.span<float>()) value *= 2;
    return std::make_unique<DoneWork>();
  }
};

Numbers exchange() {
  constexpr int64_t kCount = 100;
  Stream compute(Device::kCuda);
  Doubling peers;
  comm::StagedExchange staged(peers, compute);
  Tensor values = Tensor::zeros({kCount}, Dtype::kF32, Device::kCuda);
  Tensor sums = Tensor::zeros({3, kCount}, Dtype::kF32, Device::kCuda);
  for (int64_t step = 0; step < 3; ++step) {
    Tensor mine = Tensor::zeros({kCount}, Dtype::kF32);
    std::ranges::fill(mine.span<float>(), static_cast<float>(step + 1));
    transfer(compute, mine, values);
    staged.start({.values = values})->wait();
    Tensor sum = sums.slice(step, 1).view({kCount});
    transfer(compute, values, sum);
  }
  const Tensor all = to_cpu(compute, sums);
  return {{all.span<float>().begin(), all.span<float>().end()}};
}

TEST(ForgottenWaits, OfAnExchangeByWayOfTheHostChangeItsSums) {
  constexpr int kCopies = 2;
  expect_each_is_needed({{kHost, kCopies}, {kCompute, kCopies}, {kCopies, kCompute}}, {}, exchange);
}

}  // namespace
}  // namespace lockstep::testing::forgotten_waits_test
