#include "comm/replicas.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/digest.h"
#include "core/first_few.h"
#include "core/transfer.h"

namespace lockstep::comm {
namespace {

using ElementBytes = std::array<std::byte, sizeof(int64_t)>;

// The first difference that a rank finds between its copy and the right one.
struct Finding {
  int64_t element = 0;
  ElementBytes value{};
  ElementBytes right_value{};
};

bool all_equal(std::span<const uint64_t> digests) {
  return std::ranges::all_of(digests, [&](uint64_t digest) { return digest == digests[0]; });
}

size_t most_frequent(std::span<const uint64_t> digests) {
  const auto frequency = [&](uint64_t digest) { return std::ranges::count(digests, digest); };
  return static_cast<size_t>(std::ranges::max_element(digests, std::ranges::less{}, frequency) -
                             digests.begin());
}

template <class T>
std::string text_of(const ElementBytes& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  if constexpr (std::is_integral_v<T>) return fmt::format("{}", value);
  return fmt::format("{}", static_cast<float>(value));
}

std::string text_of(Dtype dtype, const ElementBytes& bytes) {
  switch (dtype) {
    case Dtype::kF32:
      return text_of<float>(bytes);
    case Dtype::kF16:
      return text_of<Half>(bytes);
    case Dtype::kBF16:
      return text_of<BFloat16>(bytes);
    case Dtype::kU8:
      return text_of<uint8_t>(bytes);
    case Dtype::kI32:
      return text_of<int32_t>(bytes);
    case Dtype::kI64:
      return text_of<int64_t>(bytes);
  }
  return "?";
}

Finding compare(const Tensor& mine, const Tensor& right) {
  const Tensor my_rows = to_row_major(mine);
  const Tensor right_rows = to_row_major(right);
  const size_t width = size_of(mine.dtype());
  Finding finding;
  for (int64_t i = 0; i < mine.numel(); ++i) {
    const std::byte* value = my_rows.bytes() + static_cast<size_t>(i) * width;
    const std::byte* right_value = right_rows.bytes() + static_cast<size_t>(i) * width;
    if (std::memcmp(value, right_value, width) == 0) continue;
    finding.element = i;
    std::memcpy(finding.value.data(), value, width);
    std::memcpy(finding.right_value.data(), right_value, width);
    break;
  }
  return finding;
}

// digests[r]: of rank r's copy of `suspect`.
ReplicaDifference locate(Communicator& peers,
                         const NamedTensor& suspect,
                         std::span<const uint64_t> digests) {
  ReplicaDifference found;
  const size_t right = most_frequent(digests);
  found.right_rank = static_cast<int>(right);
  found.tensor = suspect.name;
  for (size_t rank = 0; rank < digests.size(); ++rank) {
    if (digests[rank] != digests[right]) found.ranks.push_back(static_cast<int>(rank));
  }
  const Tensor mine = to_cpu(suspect.tensor);
  Tensor copy = Tensor::empty(mine.shape(), mine.dtype());
  std::memcpy(copy.bytes(), mine.bytes(), mine.nbytes());
  peers.broadcast({copy.bytes(), copy.nbytes()}, found.right_rank);
  const Finding own = compare(mine, copy);
  const std::vector<Finding> findings = gather_value(peers, own);
  const Finding& first = findings[static_cast<size_t>(found.ranks[0])];
  found.element = first.element;
  found.value = text_of(mine.dtype(), first.value);
  found.right_value = text_of(mine.dtype(), first.right_value);
  return found;
}

}  // namespace

void broadcast_tensors(Communicator& peers,
                       std::span<Tensor> tensors,
                       DevicePeers* between_gpus,
                       int root) {
  if (peers.size() == 1) return;
  std::vector<Tensor> on_gpus;
  for (Tensor& tensor : tensors) {
    if (between_gpus != nullptr && tensor.device() == Device::kCuda) {
      on_gpus.push_back(tensor);
      continue;
    }
    Tensor on_cpu = to_cpu(tensor);
    peers.broadcast({on_cpu.bytes(), on_cpu.nbytes()}, root);
    if (tensor.device() != Device::kCpu && peers.rank() != root) overwrite(on_cpu, tensor);
  }
  if (!on_gpus.empty()) between_gpus->broadcast(on_gpus, root);
}

std::string to_string(const ReplicaDifference& difference) {
  std::string text = fmt::format("rank {} differs in {} at element {}: {}, rank {} has {}",
                                 difference.ranks[0],
                                 difference.tensor,
                                 difference.element,
                                 difference.value,
                                 difference.right_rank,
                                 difference.right_value);
  const std::span others = std::span(difference.ranks).subspan(1);
  if (others.size() == 1) text += fmt::format("; rank {} differs in it too", others[0]);
  if (others.size() > 1) text += fmt::format("; ranks {} differ in it too", first_few(others));
  return text;
}

std::optional<ReplicaDifference> audit_replicas(Communicator& peers,
                                                std::span<const NamedTensor> tensors) {
  if (peers.size() == 1) return std::nullopt;
  std::vector<uint64_t> mine;
  for (const auto& [name, tensor] : tensors) {
    const Tensor on_cpu = to_cpu(tensor);
    mine.push_back(digest({on_cpu.bytes(), on_cpu.nbytes()}));
  }
  const uint64_t joint = digest(std::as_bytes(std::span(mine)));
  if (all_equal(gather_value(peers, joint))) return std::nullopt;

  const std::vector<uint64_t> all = gather_values(peers, std::span<const uint64_t>(mine));
  std::vector<uint64_t> copies(static_cast<size_t>(peers.size()));
  for (size_t i = 0; i < mine.size(); ++i) {
    for (size_t rank = 0; rank < copies.size(); ++rank) copies[rank] = all[rank * mine.size() + i];
    if (!all_equal(copies)) return locate(peers, tensors[i], copies);
  }
  throw InternalError("[audit_replicas] digests differ, but no tensor's does");
}

}  // namespace lockstep::comm
