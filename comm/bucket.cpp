#include "comm/bucket.h"

#include <fmt/format.h>

#include "core/round_up.h"
#include "core/words.h"

namespace lockstep::comm {
namespace {

std::string label_of(const Bucket& bucket, std::span<const std::string> names) {
  const std::string& first = names[bucket.parameters.front()];
  const std::string size = size_text(bucket.bytes);
  const size_t count = bucket.parameters.size();
  if (count == 1) return fmt::format("bucket {} (1 tensor, {}, {})", bucket.index, first, size);
  const std::string& last = names[bucket.parameters.back()];
  return fmt::format(
      "bucket {} ({} tensors, {} to {}, {})", bucket.index, count, first, last, size);
}

}  // namespace

std::vector<std::vector<size_t>> plan_buckets(std::span<const int64_t> bytes,
                                              const BucketCaps& caps) {
  std::vector<std::vector<size_t>> buckets;
  bool open = false;
  int64_t filled = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    if (!open) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(i);
    filled += bytes[i];
    open = filled < (buckets.size() == 1 ? caps.first_bytes : caps.bytes);
  }
  return buckets;
}

std::vector<Bucket> make_buckets(Communicator& peers,
                                 std::span<const Var> parameters,
                                 std::span<const std::string> names,
                                 std::span<const size_t> places,
                                 const BucketLayout& layout) {
  const auto element_bytes = static_cast<int64_t>(size_of(layout.wire));
  const auto aligned = [alignment = 256 / element_bytes](int64_t elements) {
    return round_up(elements, alignment);
  };
  std::vector<int64_t> bytes;
  for (const size_t place : places) {
    bytes.push_back(parameters[place].value().numel() * element_bytes);
  }
  std::vector<Bucket> buckets;
  const std::vector<std::vector<size_t>> plan = plan_buckets(bytes, layout.caps);
  for (const std::vector<size_t>& members : plan) {
    Bucket bucket;
    bucket.index = std::ssize(buckets);
    int64_t end = 0;
    for (const size_t member : members) {
      const size_t place = places[member];
      bucket.parameters.push_back(place);
      bucket.offsets.push_back(aligned(end));
      bucket.shapes.push_back(parameters[place].shape());
      bucket.bytes += bytes[member];
      end = bucket.offsets.back() + parameters[place].value().numel();
    }
    if (layout.spare && buckets.size() + 1 == plan.size()) end = aligned(end + 1);
    const Device device = parameters[bucket.parameters.front()].value().device();
    bucket.values = device == Device::kCuda ? Tensor::zeros({end}, layout.wire, device)
                                            : peers.allocate({end}, layout.wire);
    bucket.label = label_of(bucket, names);
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

}  // namespace lockstep::comm
