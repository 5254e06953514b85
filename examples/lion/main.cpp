// Lion (arXiv 2302.06675), an optimizer of your own. A training stops in its middle and goes on
// from its state on another number of ranks, with the bits of a training that never stopped.
// usage: lion [RANKS [RANKS OF THE SECOND HALF]]
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

class Lion : public nn::Optimizer {
 public:
  explicit Lion(const std::vector<nn::NamedParameter>& parameters)
      : Optimizer({{.parameters = parameters}}), momentum_(zeros_like_parameters()) {}
  void set_lr(double lr) override { lr_ = static_cast<float>(lr); }
  std::vector<nn::StateEntry> state() const override { return state_of("momentum", momentum_); }
  void step(Stream& /*stream*/) override {
    for (size_t i = 0; i < momentum_.size(); ++i) {
      const Var& parameter = groups()[0].parameters[i].var;
      if (!parameter.grad().defined()) continue;  // frozen, or a step that is skipped
      const std::span<const float> gradient = parameter.grad().span<float>();
      Tensor weights = parameter.value();
      for (size_t k = 0; k < gradient.size(); ++k) {
        float &momentum = momentum_[i].data<float>()[k], &weight = weights.data<float>()[k];
        const float mixed = 0.9F * momentum + 0.1F * gradient[k];
        const float sign = mixed > 0 ? 1.0F : mixed < 0 ? -1.0F : 0.0F;
        weight -= lr_ * (sign + 0.01F * weight);
        momentum = 0.99F * momentum + 0.01F * gradient[k];
      }
    }
  }

 private:
  std::vector<Tensor> momentum_;
  float lr_ = 0;
};

void train(int ranks, int64_t steps, const char* from, const char* to) {
  spawn(ranks, [&](Communicator& peers) {
    Mt19937 rng(42);
    nn::ConvNet network(nn::Init{rng});
    const TrainerOptions options{.batch = 64, .shards = 4, .batch_norm_groups = 4};
    TrainerHooks hooks;
    hooks.rate = [](int64_t step) { return 1e-3 / (1 + static_cast<double>(step / 20)); };
    hooks.make_optimizer = [](const auto& all) { return std::make_unique<Lion>(all); };
    Trainer trainer(peers, network, data::open_digits(), options, hooks);
    if (from != nullptr) trainer.load_state(from);
    while (trainer.steps() < steps) trainer.step();
    trainer.save_state(to);
  });
}

int main(int argc, char** argv) try {
  train(argc > 1 ? std::atoi(argv[1]) : 1, 30, nullptr, "half.safetensors");
  train(argc > 2 ? std::atoi(argv[2]) : 2, 60, "half.safetensors", "lion.safetensors");
} catch (const Error& error) {
  std::fputs(format_error(error).c_str(), stderr);
  return static_cast<int>(error.code());
}
