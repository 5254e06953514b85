#include "core/digest.h"

#include <new>

#include <fmt/core.h>
#include <xxhash.h>

#include "core/error.h"

namespace lockstep {
namespace {

enum class Layout : uint8_t { kEngine, kRowMajor };

void update_with(Digest& digest, const Tensor& tensor, Layout layout) {
  if (tensor.device() != Device::kCpu) {
    throw DeviceError(
        fmt::format("[digest_of] device: got {}, expected cpu", name_of(tensor.device())));
  }
  digest.update(name_of(tensor.dtype()));
  const Shape& shape = tensor.shape();
  digest.update(static_cast<uint64_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    digest.update(static_cast<uint64_t>(shape[axis]));
  }
  const bool reorder = layout == Layout::kEngine && shape.rank() == 4;
  const Tensor row_major = reorder ? to_row_major(tensor) : tensor;
  digest.update({row_major.bytes(), row_major.nbytes()});
}

uint64_t digest_of(const std::map<std::string, Tensor>& tensors, Layout layout) {
  Digest all;
  for (const auto& [name, tensor] : tensors) {
    all.update(uint64_t{name.size()});
    all.update(name);
    update_with(all, tensor, layout);
  }
  return all.value();
}

}  // namespace

uint64_t digest(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct Digest::State {
  XXH3_state_t* xxh = XXH3_createState();

  State() {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(xxh);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh); }
};

Digest::Digest() : state_(std::make_unique<State>()) {}
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

void Digest::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size());
}

void Digest::update(std::string_view text) {
  update(std::as_bytes(std::span(text)));
}

void Digest::update(uint64_t number) {
  update(std::as_bytes(std::span(&number, 1)));
}

uint64_t Digest::value() const {
  return XXH3_64bits_digest(state_->xxh);
}

uint64_t digest_of(const std::map<std::string, Tensor>& tensors) {
  return digest_of(tensors, Layout::kEngine);
}

uint64_t digest_of_row_major(const std::map<std::string, Tensor>& tensors) {
  return digest_of(tensors, Layout::kRowMajor);
}

uint64_t digest_of(const Tensor& tensor) {
  Digest one;
  update_with(one, tensor, Layout::kEngine);
  return one.value();
}

std::string to_hex(uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

}  // namespace lockstep
