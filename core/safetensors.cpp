#include "core/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/input_file.h"
#include "core/memory_limit.h"
#include "core/safetensors_header.h"
#include "core/safetensors_parts.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr size_t kLengthBytes = 8;

uint64_t header_length(const InputFile& file) {
  if (file.size() < kLengthBytes) {
    refuse_safetensors(file.name(), fmt::format("it has {} bytes, fewer than 8", file.size()));
  }
  std::array<std::byte, kLengthBytes> bytes{};
  file.read(0, bytes);
  const auto length = std::bit_cast<uint64_t>(bytes);
  if (length > file.size() - kLengthBytes) {
    refuse_safetensors(
        file.name(),
        fmt::format("its header claims {} bytes of a file of {}", length, file.size()));
  }
  if (length > kMaxSafetensorsHeader) {
    refuse_safetensors(
        file.name(),
        fmt::format("its header has {} bytes, above {}", length, kMaxSafetensorsHeader));
  }
  return length;
}

SafetensorsHeader read_header(const InputFile& file, uint64_t length) {
  std::string json(length, ' ');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(json)));
  return parse_safetensors_header(json, file.size() - kLengthBytes - length, file.name());
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.bytes(), tensor.nbytes()};
}

// Tensors with larger elements first, so that each is aligned to its element size; then by name.
std::vector<const std::pair<const std::string, Tensor>*> file_order(const Safetensors& content) {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  order.reserve(content.tensors.size());
  for (const auto& tensor : content.tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  return order;
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& path) {
  return read_safetensors(path, [](const SafetensorsHeader&) {});
}

SafetensorsHeader read_safetensors_header(const std::filesystem::path& path) {
  const InputFile file(path);
  return read_header(file, header_length(file));
}

Safetensors read_safetensors(const std::filesystem::path& path,
                             FunctionRef<void(const SafetensorsHeader&)> check) {
  const InputFile file(path);
  const uint64_t length = header_length(file);
  const uint64_t data_start = kLengthBytes + length;
  SafetensorsHeader header = read_header(file, length);
  check(header);
  require_memory(file.size() - data_start, file.name());
  Safetensors content;
  content.metadata = std::move(header.metadata);
  for (const auto& [name, entry] : header.tensors) {
    Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
    file.read(data_start + entry.begin, {tensor.bytes(), tensor.nbytes()});
    content.tensors.emplace_hint(content.tensors.end(), name, std::move(tensor));
  }
  return content;
}

void append_safetensors(AtomicFile& file, const Safetensors& content) {
  SafetensorsHeader header{.tensors = {}, .metadata = content.metadata};
  std::vector<std::span<const std::byte>> tensors;
  uint64_t offset = 0;
  for (const auto* named : file_order(content)) {
    const auto& [name, tensor] = *named;
    LS_CHECK(is_tensor_name(name), "[write_safetensors] name: got {}", name);
    LS_CHECK(tensor.defined() && tensor.device() == Device::kCpu,
             "[write_safetensors] {}: expected a tensor on the CPU",
             name);
    const uint64_t end = offset + tensor.nbytes();
    header.tensors[name] = {
        .dtype = tensor.dtype(), .shape = tensor.shape(), .begin = offset, .end = end};
    tensors.push_back(bytes_of(tensor));
    offset = end;
  }
  const std::string json = format_safetensors_header(header);
  LS_CHECK(json.size() <= kMaxSafetensorsHeader, "[write_safetensors] header: {}", json.size());
  const auto length = std::bit_cast<std::array<std::byte, kLengthBytes>>(uint64_t{json.size()});
  file.append(length);
  file.append(std::as_bytes(std::span(json)));
  for (const std::span<const std::byte> tensor : tensors) file.append(tensor);
}

void write_safetensors(const std::filesystem::path& path, const Safetensors& content) {
  const Folder folder = folder_for(path);
  AtomicFile file(folder, path.filename().string());
  append_safetensors(file, content);
  file.flush();
  file.take_place();
}

}  // namespace lockstep
