#include "engine/evaluation/logits.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "comm/gather.h"
#include "core/check.h"

namespace lockstep {
namespace {

template <class To, class From>
void append(const From* values, int64_t count, std::string& bytes) {
  const size_t before = bytes.size();
  bytes.resize(before + static_cast<size_t>(count) * sizeof(To));
  for (int64_t i = 0; i < count; ++i) {
    const To value = static_cast<To>(values[i]);
    std::memcpy(bytes.data() + before + static_cast<size_t>(i) * sizeof(To), &value, sizeof(To));
  }
}

// Rows of all ranks in the order of the chunks, of which rank r has r, r + ranks and so on.
void put_in_order(const std::vector<std::string>& of_ranks,
                  const data::EvaluationPlan& plan,
                  Tensor& rows) {
  const size_t row_bytes = rows.nbytes() / static_cast<size_t>(plan.dataset_size);
  std::vector<size_t> taken(of_ranks.size(), 0);
  std::byte* to = rows.bytes();
  for (int64_t chunk = 0; chunk < data::chunk_count(plan); ++chunk) {
    const auto rank = static_cast<size_t>(chunk % plan.ranks);
    const int64_t first = chunk * plan.chunk_images;
    const int64_t images = std::min(plan.chunk_images, plan.dataset_size - first);
    const size_t bytes = static_cast<size_t>(images) * row_bytes;
    LS_CHECK(taken[rank] + bytes <= of_ranks[rank].size(),
             "[logits] rank {}: got {} bytes",
             rank,
             of_ranks[rank].size());
    std::memcpy(to, of_ranks[rank].data() + taken[rank], bytes);
    taken[rank] += bytes;
    to += bytes;
  }
}

}  // namespace

void LogitCollector::add(const Tensor& logits, const Tensor& labels) {
  classes_ = logits.shape().stride0();
  target_size_ = labels.dtype() == Dtype::kF32 ? labels.shape().stride0() : 0;
  const int64_t count = logits.numel();
  switch (logits.dtype()) {
    case Dtype::kF16:
      append<float>(logits.data<Half>(), count, logits_);
      break;
    case Dtype::kBF16:
      append<float>(logits.data<BFloat16>(), count, logits_);
      break;
    default:
      append<float>(logits.data<float>(), count, logits_);
  }
  if (target_size_ > 0) {
    append<float>(labels.data<float>(), labels.numel(), labels_);
  } else {
    append<int64_t>(labels.data<int32_t>(), labels.numel(), labels_);
  }
}

Safetensors LogitCollector::over_ranks(const data::EvaluationPlan& plan,
                                       Communicator& ranks) const {
  const std::vector<std::string> logits = comm::collect_texts(ranks, logits_);
  const std::vector<std::string> labels = comm::collect_texts(ranks, labels_);
  if (ranks.rank() != 0) return {};
  Tensor all_logits = Tensor::empty({plan.dataset_size, classes_}, Dtype::kF32);
  const bool has_targets = target_size_ > 0;
  Tensor all_labels = has_targets ? Tensor::empty({plan.dataset_size, target_size_}, Dtype::kF32)
                                  : Tensor::empty({plan.dataset_size}, Dtype::kI64);
  put_in_order(logits, plan, all_logits);
  put_in_order(labels, plan, all_labels);
  return {.tensors = {{"logits", all_logits}, {has_targets ? "targets" : "labels", all_labels}},
          .metadata = {{"format", "pt"}}};
}

}  // namespace lockstep
