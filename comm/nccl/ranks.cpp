#include "comm/nccl/ranks.h"

#include <utility>

#include <fmt/core.h>

#include "comm/backoff.h"
#include "comm/operation.h"
#include "comm/seconds.h"

namespace lockstep::comm::nccl {
namespace {

using Clock = std::chrono::steady_clock;

ncclDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return ncclFloat32;
    case Dtype::kF16:
      return ncclFloat16;
    case Dtype::kBF16:
      return ncclBfloat16;
    default:
      throw DtypeError(
          fmt::format("[nccl] values: dtype {}, expected f32, f16 or bf16", name_of(dtype)));
  }
}

ncclUniqueId shared_id(Communicator& peers, const Api& api) {
  // Rank 0's failure is broadcast too, because the others wait for nothing else.
  struct {
    ncclResult_t result = ncclSuccess;
    ncclUniqueId id{};
  } first;
  if (peers.rank() == 0) first.result = api.get_unique_id(&first.id);
  peers.broadcast(std::as_writable_bytes(std::span(&first, 1)), 0);
  if (first.result == ncclSuccess) return first.id;
  throw EnvironmentError("NCCL does not start",
                         fmt::format("ncclGetUniqueId: {}", api.get_error_string(first.result)),
                         "NCCL_DEBUG=INFO says more; NCCL_SOCKET_IFNAME names the network",
                         Remedy::kHostExchange);
}

}  // namespace

Ranks::Ranks(Communicator& peers, std::chrono::milliseconds deadline, const Api& functions)
    : api_(functions),
      peers_(peers),
      deadline_(deadline),
      rank_(peers.rank()),
      size_(peers.size()) {
  const ncclUniqueId id = shared_id(peers, api_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t result = api_.comm_init_rank_config(&comm_, size_, id, rank_, &config);
  if (result == ncclInProgress) result = settle("all ranks to meet");
  if (result == ncclSuccess) return;
  const std::string why = text_of(result);
  abort();
  throw EnvironmentError("NCCL does not start",
                         why,
                         "NCCL_DEBUG=INFO says more; a driver for its CUDA (nvidia-smi)",
                         Remedy::kHostExchange);
}

Ranks::~Ranks() {
  if (comm_ != nullptr) api_.comm_destroy(comm_);
}

void Ranks::group(std::string_view what, FunctionRef<void()> body) {
  require(api_.group_start(), what);
  in_group_ = ncclSuccess;
  try {
    body();
  } catch (...) {
    api_.group_end();  // else the thread's later calls would belong to this group
    throw;
  }
  const ncclResult_t ended = api_.group_end();
  require(in_group_, what);
  accept(ended, what);
  require(settle(what), what);
}

void Ranks::send(const Tensor& from, int to, Stream& stream) {
  note(api_.send(from.bytes(),
                 static_cast<size_t>(from.numel()),
                 type_of(from.dtype()),
                 to,
                 comm_,
                 stream.cuda()));
}

void Ranks::receive(Tensor& to, int from, Stream& stream) {
  note(api_.recv(to.bytes(),
                 static_cast<size_t>(to.numel()),
                 type_of(to.dtype()),
                 from,
                 comm_,
                 stream.cuda()));
}

void Ranks::broadcast(Tensor& tensor, int root, Stream& stream) {
  note(api_.broadcast(
      tensor.bytes(), tensor.bytes(), tensor.nbytes(), ncclUint8, root, comm_, stream.cuda()));
}

void Ranks::all_reduce(Tensor& values, Stream& stream) {
  note(api_.all_reduce(values.bytes(),
                       values.bytes(),
                       static_cast<size_t>(values.numel()),
                       type_of(values.dtype()),
                       ncclSum,
                       comm_,
                       stream.cuda()));
}

// A failure is reported by group(), once the group has ended.
void Ranks::note(ncclResult_t result) {
  if (in_group_ == ncclSuccess && result != ncclInProgress) in_group_ = result;
}

void Ranks::check(std::string_view what) {
  accept(state(), what);
}

// NCCL's abort tells the work under way to end, then waits until no graph holds the communicator;
// graphs end when the error that follows unwinds this thread.
void Ranks::abort() {
  if (comm_ == nullptr) return;
  aborting_ =
      std::jthread([&api = api_, comm = std::exchange(comm_, nullptr)] { api.comm_abort(comm); });
}

void Ranks::lose(std::string_view what, std::span<const int> gone) {
  fail(lost_peer_error(what, rank_, gone));
}

void Ranks::give_up(std::string_view what, std::chrono::milliseconds waited) {
  fail(CommError(
      fmt::format("rank {} gave up waiting in NCCL for {}", rank_, what),
      fmt::format("nothing moved for {} s; NCCL does not say whose part is missing",
                  seconds_of(waited)),
      "see which rank is stopped, out of memory or only slow; NCCL_DEBUG=INFO says what NCCL does",
      Remedy::kLongerWait));
}

void Ranks::require(ncclResult_t result, std::string_view what) {
  if (result == ncclSuccess) return;
  const bool remote = result == ncclRemoteError;
  fail(CommError(fmt::format("rank {}: NCCL failed in {}", rank_, what),
                 text_of(result),
                 remote ? "another rank says what happened to it" : "NCCL_DEBUG=INFO says more",
                 remote ? Remedy::kNone : Remedy::kHostExchange));
}

void Ranks::abandon() {
  if (failure_) return;
  abort();
  failure_ = CommError("NCCL's work does not end",
                       "it was told to when the rank met an error",
                       "nvidia-smi, and what other ranks say");
}

void Ranks::fail(const CommError& error) {
  abort();
  failure_ = error;
  throw CommError(error);
}

void Ranks::accept(ncclResult_t result, std::string_view what) {
  if (result != ncclInProgress) require(result, what);
}

// A call that is in progress may not have reached its stream yet.
ncclResult_t Ranks::settle(std::string_view what) {
  const Clock::time_point start = Clock::now();
  Backoff backoff(true);
  for (;;) {
    if (const ncclResult_t now = state(); now != ncclInProgress) return now;
    if (const std::vector<int> lost = gone(); !lost.empty()) lose(what, lost);
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    if (waited >= deadline_) give_up(what, waited);
    backoff.pause();
  }
}

ncclResult_t Ranks::state() const {
  ncclResult_t now = ncclSuccess;
  const ncclResult_t asked = api_.comm_get_async_error(comm_, &now);
  return asked == ncclSuccess ? now : asked;
}

std::string Ranks::text_of(ncclResult_t result) const {
  const char* const more = api_.get_last_error(comm_);
  const char* const text = api_.get_error_string(result);
  return more == nullptr || *more == '\0' ? text : fmt::format("{}: {}", text, more);
}

}  // namespace lockstep::comm::nccl
