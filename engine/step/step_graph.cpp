#include "engine/step/step_graph.h"

#include "core/check.h"
#include "kernels/elementwise/copy.h"

namespace lockstep {
namespace {

bool alike(const Shards& a, const Shards& b) {
  return a.offsets == b.offsets && a.step_images == b.step_images;
}

}  // namespace

struct StepGraph::Recorded {
  Shards shards;
  int64_t steps = 0;  // with these shards
  Tensor images, labels, mix, numbers;
  nn::CrossEntropy figures;
  std::shared_ptr<std::byte> workspace;
  size_t left_bytes = 0;  // in the pool, by the recorded step
  cuda::Graph graph;

  void begin(const Var& first_images, const Tensor& first_labels, const Tensor& first_mix) {
    shards = first_images.shards();
    steps = 0;
    images = Tensor::empty(first_images.shape(), first_images.dtype(), Device::kCuda);
    labels = Tensor::empty(first_labels.shape(), first_labels.dtype(), Device::kCuda);
    if (first_mix.defined()) mix = Tensor::empty({1}, Dtype::kF32, Device::kCuda);
    numbers = Tensor::empty(first_labels.shape(), Dtype::kI64, Device::kCuda);
  }

  bool has_size_of(const Var& others) const {
    const Shape &a = images.shape(), &b = others.shape();
    return a[2] == b[2] && a[3] == b[3];
  }
  bool is_like(const Var& others) const {
    return images.defined() && has_size_of(others) && alike(shards, others.shards());
  }

  // The images and their numbers at the addresses that the graph reads.
  Var fixed(const Batch& batch) const {
    auto with_numbers = std::make_shared<Batch>(batch);
    with_numbers->draws.images = numbers;
    return {images, std::move(with_numbers)};
  }
};

StepGraph::StepGraph(Stream& stream, bool wanted, size_t pool_bytes) : stream_(stream) {
  if (stream.device() != Device::kCuda) return;
  pool_ = std::make_unique<cuda::MemoryPool>(pool_bytes);
  if (wanted) recorded_ = std::make_unique<Recorded>();
}

StepGraph::~StepGraph() {
  if (!pool_) return;
  try {
    stream_.synchronize();  // its memory is about to be somebody else's
  } catch (const Error&) {
    return;  // the device is lost, and the error that says so is on its way
  }
}

cuda::MemoryPool::Use StepGraph::use_memory() const {
  return cuda::MemoryPool::Use(pool_.get());
}

nn::CrossEntropy StepGraph::run(const Var& images,
                                const Tensor& labels,
                                const Tensor& mix,
                                FunctionRef<Step> step) {
  repeated_ = false;
  if (!recorded_) {
    const auto memory = use_memory();
    return step(images, labels, mix);
  }
  if (recorded_->graph && !recorded_->has_size_of(images)) forget();
  Recorded& recorded = *recorded_;
  if (!recorded.graph && !recorded.is_like(images)) recorded.begin(images, labels, mix);
  if (!recorded.is_like(images) || ++recorded.steps == 1) {
    const auto memory = use_memory();
    return step(images, labels, mix);
  }
  kernels::copy(stream_, images.value(), recorded.images);
  kernels::copy(stream_, labels, recorded.labels);
  kernels::copy(stream_, images.batch().draws.images, recorded.numbers);
  if (mix.defined()) kernels::copy(stream_, mix, recorded.mix);
  const auto on_copies = [&] {
    const auto memory = use_memory();
    return step(recorded.fixed(images.batch()), recorded.labels, recorded.mix);
  };
  if (recorded.steps == 2) return on_copies();
  repeated_ = static_cast<bool>(recorded.graph);
  if (!repeated_) {
    recorded.graph = cuda::Graph::record(stream_.cuda(), [&] { recorded.figures = on_copies(); });
    recorded.workspace = stream_.workspace_memory();
    pool_->hold();
    recorded.left_bytes = pool_->bytes_in_use();
  }
  LS_CHECK(
      pool_->bytes_in_use() <= recorded.left_bytes,
      "[step_graph] memory that the graph writes: {} bytes are in use, {} when it was recorded",
      pool_->bytes_in_use(),
      recorded.left_bytes);
  recorded.graph.launch(stream_.cuda());
  return recorded.figures;
}

void StepGraph::forget() {
  if (!recorded_ || !recorded_->graph) return;
  stream_.synchronize();  // the last repetition reads what is freed here
  recorded_ = std::make_unique<Recorded>();
}

}  // namespace lockstep
