#include "comm/staged_exchange.h"

#include "core/cuda/memory.h"
#include "core/transfer.h"

namespace lockstep::comm {

class StagedExchange::SumOnHost : public Work {
 public:
  SumOnHost(StagedExchange& owner, Route& route, const AllReduce& what)
      : owner_(owner), route_(route), what_(what) {
    route_.ready.record(owner_.compute_.cuda());
    route_.ready.make_wait(owner_.copies_.cuda());
    transfer(owner_.copies_, what_.values, route_.on_host);
    route_.fetched.record(owner_.copies_.cuda());
  }

  bool advance() override { return done_; }

  void wait() override {
    if (done_) return;
    route_.fetched.synchronize();
    owner_.peers_
        .start_all_reduce(
            {.values = route_.on_host, .algorithm = what_.algorithm, .label = what_.label})
        ->wait();
    transfer(owner_.copies_, route_.on_host, what_.values);
    route_.returned.record(owner_.copies_.cuda());
    route_.returned.make_wait(owner_.compute_.cuda());
    done_ = true;
  }

 private:
  StagedExchange& owner_;
  Route& route_;
  AllReduce what_;
  bool done_ = false;
};

StagedExchange::StagedExchange(Communicator& peers, Stream& compute)
    : peers_(peers), compute_(compute), copies_(Device::kCuda, 1, false, cuda::Priority::kHigh) {}

std::unique_ptr<Work> StagedExchange::start(const AllReduce& what) {
  const auto [route, is_new] = routes_.try_emplace(what.values.bytes());
  Tensor& on_host = route->second.on_host;
  if (is_new) on_host = cuda::empty_pinned(what.values.shape(), what.values.dtype());
  return std::make_unique<SumOnHost>(*this, route->second, what);
}

}  // namespace lockstep::comm
