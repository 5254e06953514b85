// Sends a hundredth of each gradient through a Trainer's hook: each rank's largest values by
// magnitude, with their places (top-k). The values that were not sent are added to the next step's
// gradient (error feedback). Trains the ConvNet on the built-in digits without the hook, then with
// it.
// usage: compression_hook [RANKS [STEPS]]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

namespace {

struct Entry {
  int32_t place;
  float value;
};

class TopK {
 public:
  // Replaces the bucket's values by the sum of the values that all ranks send.
  std::unique_ptr<Work> operator()(Communicator& peers, comm::Bucket& bucket) {
    const std::span<float> values = bucket.values.span<float>();
    std::vector<float>& unsent = unsent_[bucket.index];
    unsent.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) unsent[i] += values[i];

    const std::vector<Entry> mine = take_largest(unsent, values.size() / 100 + 1);
    std::vector<Entry> all(mine.size() * static_cast<size_t>(peers.size()));
    peers.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    std::ranges::fill(values, 0.0F);
    for (const Entry& entry : all) values[static_cast<size_t>(entry.place)] += entry.value;
    return nullptr;  // done already
  }

 private:
  static std::vector<Entry> take_largest(std::vector<float>& values, size_t count) {
    std::vector<int32_t> places(values.size());
    std::iota(places.begin(), places.end(), 0);
    const auto at = [&](int32_t place) -> float& { return values[static_cast<size_t>(place)]; };
    const auto middle = places.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(places.begin(), middle, places.end(), [&](int32_t a, int32_t b) {
      return std::abs(at(a)) != std::abs(at(b)) ? std::abs(at(a)) > std::abs(at(b)) : a < b;
    });
    std::vector<Entry> taken;
    for (auto place = places.begin(); place != middle; ++place) {
      taken.push_back({*place, std::exchange(at(*place), 0.0F)});
    }
    return taken;
  }

  std::map<int64_t, std::vector<float>> unsent_;  // by bucket
};

// Trains for `steps` steps, then prints the last loss and the bytes that a rank moves in a step.
void train(Communicator& ranks, int64_t steps, const char* name, comm::BucketExchange exchange) {
  Mt19937 rng(42);
  nn::ConvNet network(nn::Init{rng});
  Trainer trainer(ranks,
                  network,
                  data::open_digits(),
                  {.batch = 64, .optimizer = {.lr = 0.02, .momentum = 0.9}},
                  {.exchange = std::move(exchange)});
  const int64_t before = ranks.traffic().moved_bytes;
  double loss = 0;
  while (trainer.steps() < steps)
    loss = trainer.step().loss;  // calls the hook for each full bucket
  const int64_t moved = ranks.traffic().moved_bytes - before;
  if (ranks.rank() != 0) return;
  std::printf(
      "%-12s %8ld bytes per step, loss %.4f\n", name, static_cast<long>(moved / steps), loss);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 200;
  try {
    spawn(ranks, [&](Communicator& peers) {
      train(peers, steps, "uncompressed", {});
      train(peers, steps, "top-k", TopK());
    });
    std::puts("top-k gives up the tree's order of the sum: its bits depend on the number of ranks");
  } catch (const Error& error) {
    std::fputs(format_error(error).c_str(), stderr);
    return static_cast<int>(error.code());
  }
}
