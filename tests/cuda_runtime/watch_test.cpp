#include "core/cuda/watch.h"

#include <gmock/gmock.h>

#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::watch_test {
namespace {

using namespace testing;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

constexpr int kPeerLost = static_cast<int>(ExitCode::kPeerLost);

// Gives up at once, or looks on.
class TestWatch : public cuda::Watch {
 public:
  TestWatch(const Stream& stream, bool gives_up) : Watch({stream.cuda()}), gives_up_(gives_up) {}

  void look(std::chrono::steady_clock::duration) override {
    ++looks;
    if (gives_up_) throw CommError("a lost rank", "the test says so", "nothing");
  }

  int looks = 0;

 private:
  [[noreturn]] void end_process(const Error& why) noexcept override {
    std::fputs(format_error(why).c_str(), stderr);
    std::_Exit(static_cast<int>(why.code()));
  }
  const bool gives_up_;
};

// With work that the host can only ask for.
class WatchTest : public ProcessTest {
 protected:
  WatchTest() { give_work(); }
  void give_work() { fill(stream_, values_, 1); }

  Stream stream_{Device::kCuda};
  Tensor values_ = device_floats(5);
};

TEST_F(WatchTest, LooksWhereTheHostWaits) {
  TestWatch watch(stream_, false);
  const auto looks_of = [&](auto&& wait) {
    const int before = watch.looks;
    give_work();
    wait();
    return watch.looks - before;
  };
  Tensor one = Tensor::zeros({5}, Dtype::kF32);
  EXPECT_GT(looks_of([&] { stream_.synchronize(); }), 0);
  EXPECT_GT(looks_of([&] { to_cpu(stream_, values_); }), 0);
  EXPECT_GT(looks_of([&] { to_cpu(values_); }), 0);
  EXPECT_GT(looks_of([&] { overwrite(one, values_); }), 0);
  Tensor pinned;
  EXPECT_GT(looks_of([&] { pinned = cuda::empty_pinned({3}, Dtype::kF32); }), 0);
  EXPECT_GT(looks_of([&] { pinned = {}; }), 0);
  EXPECT_GT(looks_of([&] { const Stream ended(Device::kCuda); }), 0);
  cuda::Event event;
  event.record(stream_.cuda());
  EXPECT_GT(looks_of([&] { event.synchronize(); }), 0);
}

TEST_F(WatchTest, GivesUpByThrowing) {
  const TestWatch watch(stream_, true);
  EXPECT_THROW(stream_.synchronize(), CommError);
  give_work();
  EXPECT_THROW(to_cpu(values_), CommError);
  give_work();
  EXPECT_THROW(cuda::empty_pinned({3}, Dtype::kF32), CommError);
}

TEST_F(WatchTest, EndsTheProcessWhereNothingMayThrow) {
  const auto ends = [&](auto&& body) {
    EXPECT_EXIT(run_as_program([&] {
                  give_work();
                  const TestWatch watch(stream_, true);
                  body();
                }),
                ExitedWithCode(kPeerLost),
                HasSubstr("lockstep: error: a lost rank\n"));
  };
  Tensor pinned = cuda::empty_pinned({3}, Dtype::kF32);
  ends([&] { pinned = {}; });
  ends([] { const Stream ended(Device::kCuda); });
}

}  // namespace
}  // namespace lockstep::watch_test
