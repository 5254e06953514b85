// Training inside another program: images from its own memory, ranks as threads, no MPI, and no
// files except the weights that it saves. usage: embed FILE.safetensors [RANKS]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include <lockstep/lockstep.h>

namespace {

// The program's own images: 28 x 28 pixels, gray. Here they are drawn digits.
class Album : public lockstep::data::Dataset {
 public:
  explicit Album(lockstep::data::Digits::Split split) {
    const lockstep::data::Digits digits(split);
    for (int64_t i = 0; i < digits.size(); ++i) {
      pixels_.emplace_back(28 * 28);
      digits.read(i, pixels_.back());
      labels_.push_back(digits.label(i));
    }
  }

  std::string name() const override { return "album"; }
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t classes() const override { return 10; }
  lockstep::data::ImageShape image_shape() const override { return {1, 28, 28}; }
  int32_t label(int64_t i) const override { return labels_[static_cast<size_t>(i)]; }
  void read(int64_t i, std::span<uint8_t> pixels) const override {
    std::ranges::copy(pixels_[static_cast<size_t>(i)], pixels.begin());
  }
  std::string digest() const override { return "album"; }

 private:
  std::vector<std::vector<uint8_t>> pixels_;
  std::vector<int32_t> labels_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("usage: embed FILE.safetensors [RANKS]"), 2;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  using Split = lockstep::data::Digits::Split;
  const lockstep::data::DatasetPair images{.train = std::make_shared<Album>(Split::kTrain),
                                           .test = std::make_shared<Album>(Split::kTest)};
  try {
    lockstep::spawn(ranks, [&](lockstep::Communicator& peers) {
      lockstep::Mt19937 rng(42);
      lockstep::nn::ConvNet network(lockstep::nn::Init{rng});
      lockstep::Trainer trainer(peers,
                                network,
                                images,
                                {.batch = 64,
                                 .shards = 4,
                                 .batch_norm_groups = 4,
                                 .optimizer = {.lr = 0.02, .momentum = 0.9}});
      trainer.run([&](const lockstep::StepReport& report) {
        if (peers.rank() == 0 && report.step % 10 == 0) {
          std::printf("step %ld: loss %.4f\n", static_cast<long>(report.step), report.loss);
        }
        return report.step < 100;
      });
      const lockstep::EvaluationReport found = trainer.evaluate();
      if (peers.rank() == 0) std::printf("%.2f %% of the test images\n", found.accuracy());
      trainer.save(argv[1]);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 1;
  }
}
