// PowerSGD (arXiv 1905.13727) as a Trainer's exchange: a gradient that is a matrix travels as two
// thin ones, and what they lose is added to the next step's gradient. Trains the ConvNet on the
// built-in digits. The sums' order, and so the bits, depend on the number of ranks.
// usage: powersgd [RANKS [RANK OF A MATRIX; 0: no compression]]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

// Gram and Schmidt's, of the columns of (values.size() / columns, columns).
void orthogonalize(std::vector<float>& values, size_t columns) {
  for (size_t j = 0; j < columns; ++j)
    for (size_t k = 0; k <= j; ++k) {
      float dot = 0;
      for (size_t i = 0; i < values.size(); i += columns) dot += values[i + k] * values[i + j];
      for (size_t i = 0; i < values.size(); i += columns) {
        float& value = values[i + j];
        value = k < j ? value - dot * values[i + k] : value / (std::sqrt(dot) + 1e-8F);
      }
    }
}

struct PowerSgd {
  struct State {
    std::vector<float> lost, right;  // (rows, columns); (columns, rank)
  };
  size_t rank;
  std::map<size_t, State> states = {};  // by parameter

  std::unique_ptr<Work> operator()(Communicator& ranks, comm::Bucket& bucket) {
    for (size_t i = 0; i < bucket.shapes.size(); ++i) {
      const std::span<float> gradient = bucket.gradient(i);
      const auto rows = static_cast<size_t>(bucket.shapes[i][0]), columns = gradient.size() / rows;
      if (rank > 0 && rank * (rows + columns) < gradient.size()) {
        compress(ranks, gradient, columns, states[bucket.parameters[i]]);
      } else {
        ranks.all_reduce_sum(gradient);
      }
    }
    return nullptr;  // done already
  }

  void compress(Communicator& ranks, std::span<float> all, size_t columns, State& state) const {
    if (state.lost.empty()) {
      state = {std::vector<float>(all.size()), std::vector<float>(columns * rank)};
      Mt19937(1).uniform(state.right, -1, 1);  // the same on all ranks
    }
    for (size_t i = 0; i < all.size(); ++i) state.lost[i] = all[i] += state.lost[i];
    std::vector<float> left(all.size() / columns * rank);
    const auto each = [&](auto&& body) {
      for (size_t i = 0; i < all.size(); ++i) {
        float *const l = &left[i / columns * rank], *const r = &state.right[i % columns * rank];
        for (size_t k = 0; k < rank; ++k) body(all[i], l[k], r[k]);
      }
    };
    each([](float m, float& l, float r) { l += m * r; });
    ranks.all_reduce_sum(left);
    orthogonalize(left, rank);
    std::ranges::fill(state.right, 0.0F);
    each([](float m, float l, float& r) { r += m * l; });
    ranks.all_reduce_sum(state.right);
    std::ranges::fill(all, 0.0F);
    each([](float& m, float l, float r) { m += l * r; });
    const float part = 1 / static_cast<float>(ranks.size());
    for (size_t i = 0; i < all.size(); ++i) state.lost[i] -= part * all[i];
  }
};

int main(int argc, char** argv) try {
  spawn(argc > 1 ? std::atoi(argv[1]) : 2, [&](Communicator& ranks) {
    Mt19937 rng(42);
    nn::ConvNet network(nn::Init{rng});
    const PowerSgd exchange{.rank = argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2};
    const TrainerOptions options{.batch = 64, .optimizer = {.lr = 0.02, .momentum = 0.9}};
    Trainer trainer(ranks, network, data::open_digits(), options, {.exchange = exchange});
    const int64_t before = ranks.traffic().moved_bytes;
    trainer.run([](const StepReport& report) { return report.step < 100; });
    const auto moved = static_cast<int>(ranks.traffic().moved_bytes - before);
    const double right = trainer.evaluate().accuracy();
    if (ranks.rank() == 0) std::printf("%d bytes per step, %.2f %% right\n", moved / 100, right);
  });
} catch (const Error& error) {
  std::fputs(format_error(error).c_str(), stderr);
  return static_cast<int>(error.code());
}
