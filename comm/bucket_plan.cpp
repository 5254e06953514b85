#include "comm/bucket_plan.h"

namespace lockstep::comm {

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

}  // namespace lockstep::comm
