#include "tests/emulation/cudnn/execution.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "tests/emulation/access_check.h"
#include "tests/emulation/engine.h"
#include "tests/emulation/runtime/state.h"

namespace lockstep::emulation {
namespace {

constexpr size_t kWorkspaceAlignment = 256;
constexpr size_t kGuard = 64;  // bytes watched before and after a workspace
constexpr int kGarbage = 0xff;

struct Range {
  std::string name;
  const std::byte* begin;
  size_t bytes;

  bool overlaps(const Range& other) const {
    return begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

void check_range(const Range& range, size_t alignment, int device) {
  const Heap& heap = state().heap;
  const Heap::Block* const block = heap.find(range.begin);
  if (heap.place_of(range.begin, range.bytes) != Place::kDevice || block->device != device) {
    throw CudnnRefusal{
        CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
        fmt::format("{}: its {} bytes are not in the device's memory", range.name, range.bytes)};
  }
  if (reinterpret_cast<uintptr_t>(range.begin) % alignment != 0) {
    throw CudnnRefusal{CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                       fmt::format("{}: not aligned to {} bytes", range.name, alignment)};
  }
}

std::string name_of(const CudnnTensor& tensor) {
  return fmt::format("tensor {}", tensor.uid);
}

}  // namespace

CudnnExecution::CudnnExecution(const BackendDescriptor& plan,
                               const BackendDescriptor& pack,
                               int device)
    : work_(plan.work),
      engine_(plan.engine),
      device_(device),
      workspace_bytes_(static_cast<size_t>(engine_.workspace(*work_))) {
  find_operands(pack);
  check_memory();
  check_overlaps();
}

void CudnnExecution::find_operands(const BackendDescriptor& pack) {
  const auto uids = pack.values<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.values<std::byte*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (size_t i = 0; i < uids.size(); ++i) {
    require(operands_.emplace(uids[i], pointers[i]).second,
            CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
            "the variant pack names a tensor twice");
  }
  const std::vector<CudnnTensor> tensors = work_->tensors();
  for (const CudnnTensor& tensor : tensors) {
    if (!operands_.contains(tensor.uid)) {
      throw CudnnRefusal{CUDNN_STATUS_BAD_PARAM, name_of(tensor) + ": not in the variant pack"};
    }
  }
  require(operands_.size() == tensors.size(),
          CUDNN_STATUS_BAD_PARAM,
          "the variant pack names a tensor that the graph has not");
  if (workspace_bytes_ == 0) return;
  workspace_ = pack.value<std::byte*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
}

void CudnnExecution::check_memory() const {
  for (const CudnnTensor& tensor : work_->tensors()) {
    check_range({name_of(tensor), operands_.at(tensor.uid), tensor.bytes()},
                static_cast<size_t>(tensor.alignment),
                device_);
  }
  if (workspace_bytes_ > 0)
    check_range({"workspace", workspace_, workspace_bytes_}, kWorkspaceAlignment, device_);
}

void CudnnExecution::check_overlaps() const {
  std::vector<Range> written = {{"workspace", workspace_, workspace_bytes_}};
  std::vector<Range> all = written;
  for (const CudnnTensor& tensor : work_->results())
    written.push_back({name_of(tensor), operands_.at(tensor.uid), tensor.bytes()});
  for (const CudnnTensor& tensor : work_->tensors())
    all.push_back({name_of(tensor), operands_.at(tensor.uid), tensor.bytes()});
  for (const Range& one : written) {
    for (const Range& other : all) {
      if (one.name == other.name || !one.overlaps(other)) continue;
      throw CudnnRefusal{CUDNN_STATUS_BAD_PARAM,
                         fmt::format("{} overlaps {}", one.name, other.name)};
    }
  }
}

CudnnPlaces CudnnExecution::places() const {
  return [this](const CudnnTensor& tensor) -> void* { return operands_.at(tensor.uid); };
}

Convolution::Rounding CudnnExecution::rounding() const {
  return {.reduced = engine_.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION),
          .narrow = engine_.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
                    (engine_.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) &&
                     work_->in.type == CUDNN_DATA_FLOAT)};
}

std::vector<std::byte> CudnnExecution::surroundings() const {
  const std::span<const std::byte> block = state().heap.range_of(workspace_);
  const auto is_result = [&](const std::byte* at) {
    return std::ranges::any_of(work_->results(), [&](const CudnnTensor& tensor) {
      const std::byte* const begin = operands_.at(tensor.uid);
      return begin <= at && at < begin + tensor.bytes();
    });
  };
  std::vector<std::byte> found;
  const auto watch = [&](const std::byte* begin) {
    for (const std::byte* at = begin; at < begin + kGuard; ++at) {
      const bool is_inside = block.data() <= at && at < block.data() + block.size();
      if (is_inside && !is_result(at)) found.push_back(*at);
    }
  };
  watch(workspace_ - kGuard);
  watch(workspace_ + workspace_bytes_);
  return found;
}

template <class Body>
void CudnnExecution::guarded(Body&& body) const {
  try {
    check_memory();  // the memory may have been freed since
  } catch (const CudnnRefusal& refusal) {
    throw Fault("a convolution of cuDNN: " + refusal.text);
  }
  if (workspace_bytes_ == 0) return body();
  const std::vector<std::byte> around = surroundings();
  body();
  if (surroundings() != around) throw Fault("a convolution of cuDNN wrote outside its workspace");
}

void CudnnExecution::corrupt_result() const {
  if (planted_cudnn() != "wrong-result") return;
  const CudnnTensor& tensor = work_->result();
  operands_.at(tensor.uid)[bytes_of_element(tensor.type) - 1] ^= std::byte{3};  // the exponent
}

void CudnnExecution::begin() const {
  guarded([&] {
    std::memset(workspace_, kGarbage, workspace_bytes_);
    work_->sum_parts(places(), engine_.parts, rounding(), reinterpret_cast<float*>(workspace_));
    if (planted_cudnn() == "overruns-workspace") workspace_[workspace_bytes_] ^= std::byte{1};
    note_written(workspace_, workspace_bytes_);
  });
}

void CudnnExecution::end() const {
  guarded([&] {
    work_->finish(places(), engine_.parts, reinterpret_cast<const float*>(workspace_));
    std::memset(workspace_, kGarbage, workspace_bytes_);
    for (const CudnnTensor& tensor : work_->results())
      note_written(operands_.at(tensor.uid), tensor.bytes());
    corrupt_result();
  });
}

void CudnnExecution::all_at_once() const {
  static int64_t times = 0;  // a nondeterministic sum changes its order each time
  const bool is_random = engine_.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  const int64_t parts = is_random ? 1 + ++times % 5 : 1;
  std::vector<float> sums(static_cast<size_t>(parts * work_->outputs()));
  guarded([&] {
    work_->sum_parts(places(), parts, rounding(), sums.data());
    work_->finish(places(), parts, sums.data());
    for (const CudnnTensor& tensor : work_->results())
      note_written(operands_.at(tensor.uid), tensor.bytes());
    corrupt_result();
  });
}

void CudnnExecution::queue(std::shared_ptr<CudnnExecution> execution, CUstream_st& stream) {
  const bool is_cut = execution->engine_.parts > 1;
  std::vector<std::function<void()>> steps(static_cast<size_t>(execution->engine_.steps), [] {});
  if (is_cut) {
    steps.front() = [execution] { execution->begin(); };
    steps.back() = [execution] { execution->end(); };
  } else {
    steps.back() = [execution] { execution->all_at_once(); };
  }
  for (auto& step : steps) {
    require(submit(stream, std::move(step)) == cudaSuccess,
            CUDNN_STATUS_EXECUTION_FAILED_CUDART,
            "the stream takes no work");
  }
}

const char* CudnnExecution::name() const {
  switch (work_->pass) {
    case CudnnPass::kForward:
      return work_->scale  ? "cudnn forward with norm and sums"
             : work_->sums ? "cudnn forward with sums"
                           : "cudnn forward";
    case CudnnPass::kBackwardData:
      return "cudnn backward data";
    case CudnnPass::kBackwardWeight:
      break;
  }
  return work_->scale ? "cudnn backward weight with norm" : "cudnn backward weight";
}

}  // namespace lockstep::emulation
