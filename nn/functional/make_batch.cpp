#include <utility>

#include "kernels/elementwise/add.h"
#include "kernels/elementwise/fill.h"
#include "nn/functional.h"

namespace lockstep::nn {

std::shared_ptr<const Batch> make_batch(Stream& stream,
                                        Shards shards,
                                        bool recording,
                                        const Precision& precision,
                                        TapeListener* listener,
                                        Draws draws) {
  auto batch = std::make_shared<Batch>();
  batch->stream = &stream;
  batch->shards = std::move(shards);
  batch->precision = precision;
  batch->recording = recording;
  batch->accumulate = kernels::add;
  batch->fill = kernels::fill;
  batch->listener = listener;
  batch->draws = std::move(draws);
  return batch;
}

}  // namespace lockstep::nn
