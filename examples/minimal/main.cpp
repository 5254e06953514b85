// Tutorial 004's first program: nn.Linear(10, 10) under DDP, on any number of ranks.
#include <cstdio>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

int main() {
  const comm::Connection job = comm::connect(comm::read_launch());  // init_process_group()
  Communicator& ranks = *job.ranks;
  Stream stream(Device::kCpu, 1);
  Mt19937 rng(0);  // torch.manual_seed(0): PyTorch's initial weights
  nn::Linear model(nn::Init{rng}, 10, 10);
  comm::GradientReducer ddp(ranks, stream, model.parameters(), model.parameter_names());
  nn::Sgd optimizer(model.named_parameters(), {.lr = 0.1F});  // once, not in the loop

  constexpr int64_t kBatch = 4;  // per rank, as in a DataLoader
  const Shards shards{.offsets = {0, kBatch},
                      .total = ranks.size(),
                      .first = ranks.rank(),
                      .step_images = kBatch * ranks.size()};
  for (int64_t step = 0; step < 10; ++step) {
    Tensor data = Tensor::zeros({kBatch, 10}, Dtype::kF32);
    Tensor labels = Tensor::zeros({kBatch}, Dtype::kI32);
    for (int64_t i = 0; i < kBatch; ++i) {  // rank r of W takes samples r, r + W, r + 2W, ...
      const int64_t sample = (step * kBatch + i) * ranks.size() + ranks.rank();
      labels.data<int32_t>()[i] = static_cast<int32_t>(sample % 10);
      data.data<float>()[10 * i + sample % 10] = 1;
    }
    const Var prediction = model.forward(Var(data, nn::make_batch(stream, shards)));
    Var loss = nn::softmax_cross_entropy(prediction, labels).loss;
    optimizer.zero_grad();
    loss.backward();
    ddp.finish();  // every rank now has the mean over all samples of the step
    optimizer.step(stream);
    float mean = *loss.value().data<float>();
    ranks.all_reduce_sum(std::span(&mean, 1));
    if (ranks.rank() == 0) std::printf("step %d loss %.6f\n", static_cast<int>(step) + 1, mean);
  }
  std::printf("rank %d weight %.6f\n",
              ranks.rank(),
              *model.named_parameters().front().var.value().data<float>());
}
