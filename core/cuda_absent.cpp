// The functions of core/cuda in a build without CUDA.
#include "core/allocator.h"
#include "core/cuda/device.h"
#include "core/cuda/graph.h"
#include "core/cuda/ipc.h"
#include "core/cuda/library.h"
#include "core/cuda/memory.h"
#include "core/cuda/stopwatch.h"
#include "core/cuda/stream.h"
#include "core/cuda/watch.h"
#include "core/error.h"

namespace lockstep {
namespace {

EnvironmentError refusal() {
  return EnvironmentError("this build has no CUDA",
                          "no CUDA toolkit was found when it was configured, or LOCKSTEP_CUDA=OFF",
                          "cmake --preset release -DLOCKSTEP_CUDA=ON",
                          Remedy::kCpu);
}

[[noreturn]] void refuse() {
  throw refusal();
}

}  // namespace

CachingAllocator& cuda_allocator() {
  refuse();
}
CachingAllocator& cuda_workspaces() {
  refuse();
}

namespace cuda {

std::optional<Obstacle> find_obstacle() {
  return Obstacle{.kind = Obstacle::Kind::kNotBuilt, .error = refusal()};
}
std::string driver_version() {
  return {};
}
std::string runtime_version() {
  return {};
}
int visible_devices() {
  return 0;
}
std::vector<DeviceProperties> list_devices() {
  return {};
}
int visible_device(const std::string&) {
  return -1;
}
void select_device(int, int) {
  refuse();
}
void ensure_device() {
  refuse();
}
const DeviceProperties& device_properties() {
  refuse();
}
size_t free_bytes() {
  refuse();
}

MemoryPool::MemoryPool(size_t) {
  refuse();
}
void MemoryPool::hold() {
  refuse();
}
size_t MemoryPool::bytes_in_use() const {
  refuse();
}
MemoryPool::Use::Use(const MemoryPool*) : changes_(false) {}
MemoryPool::Use::~Use() = default;
size_t peak_bytes() {
  return 0;
}
const std::shared_ptr<CachingAllocator>& pool_in_use() {
  refuse();
}

Library::Library(const char*, const std::string&, std::string_view, Remedy) {
  refuse();
}
void* Library::symbol(const char*) const {
  refuse();
}

Watch::Watch(const std::vector<CUstream_st*>&) {
  refuse();
}
Watch::~Watch() = default;
void Watch::before_end() noexcept {}
void wait_watched(CUstream_st*) {
  refuse();
}

Graph Graph::record(CUstream_st*, FunctionRef<void()>) {
  refuse();
}
void Graph::launch(CUstream_st*) const {
  refuse();
}
bool is_recording_here() {
  return false;
}
bool is_recording(CUstream_st*) {
  refuse();
}

Mark::Mark() {
  refuse();
}
void Mark::record(CUstream_st*) {
  refuse();
}
double Mark::microseconds_since(const Mark&) const {
  refuse();
}
double median_microseconds(CUstream_st*, FunctionRef<void()>) {
  refuse();
}

Tensor empty_pinned(const Shape&, Dtype) {
  refuse();
}

void copy_when_idle(void*, const void*, size_t) {
  refuse();
}
void zero_when_idle(void*, size_t) {
  refuse();
}

std::shared_ptr<CUstream_st> make_stream(Priority) {
  refuse();
}
void synchronize(CUstream_st*) {
  refuse();
}
void copy_bytes(CUstream_st*, void*, const void*, size_t) {
  refuse();
}

Event::Event() {
  refuse();
}
void Event::record(CUstream_st*) {
  refuse();
}
void Event::make_wait(CUstream_st*) const {
  refuse();
}
bool Event::done() const {
  refuse();
}
void Event::synchronize() const {
  refuse();
}

bool can_reach(const std::string&) {
  refuse();
}
MemoryHandle export_memory(const std::byte*) {
  refuse();
}
std::shared_ptr<std::byte> import_memory(const MemoryHandle&) {
  refuse();
}
InterprocessEvent::InterprocessEvent() {
  refuse();
}
InterprocessEvent::InterprocessEvent(const Handle&) {
  refuse();
}
Handle InterprocessEvent::handle() const {
  refuse();
}
void InterprocessEvent::record(CUstream_st*) {
  refuse();
}
void InterprocessEvent::make_wait(CUstream_st*) const {
  refuse();
}
bool InterprocessEvent::done() const {
  refuse();
}

}  // namespace cuda
}  // namespace lockstep
