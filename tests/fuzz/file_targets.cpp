// Files of weights and data sets.
#include <algorithm>
#include <stdexcept>

#include "core/flight_recorder.h"
#include "core/safetensors.h"
#include "core/timeline.h"
#include "data/cifar10.h"
#include "data/idx.h"
#include "data/torch_file/pickle_reader.h"
#include "data/torch_file/torch_file.h"
#include "data/torch_file/zip_reader.h"
#include "inspect/flight/describe_flight.h"
#include "inspect/weights/export_weights.h"
#include "tests/data/idx_files.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/target.h"
#include "trainers/flight/read_flight.h"

namespace lockstep::fuzz {
namespace {

Safetensors small_weights() {
  Safetensors weights;
  weights.tensors["fc.weight"] = Tensor::zeros(Shape{2, 3}, Dtype::kF32);
  weights.tensors["fc.bias"] = Tensor::zeros(Shape{2}, Dtype::kF16);
  weights.metadata["format"] = "pt";
  return weights;
}

// A file that was read can be written and read again.
void check_again(const Safetensors& read) {
  const auto path = scratch() / "again";
  write_safetensors(path, read);
  const Safetensors again = read_safetensors(path);
  if (again.tensors.size() != read.tensors.size() || again.metadata != read.metadata) {
    throw std::logic_error("what was read is not what is read again");
  }
}

void read_weights(std::string_view input) {
  check_again(read_safetensors(as_file(input)));
}

std::vector<std::string> weights_seeds() {
  const auto path = scratch() / "seed";
  write_safetensors(path, small_weights());
  return {testing::read_text(path)};
}

void read_torch(std::string_view input) {
  const auto path = as_file(input);
  (void)data::is_torch_file(path);
  (void)data::read_torch_file(path);
}

std::vector<std::string> torch_seeds() {
  const auto path = scratch() / "seed";
  std::vector<std::string> seeds;
  data::write_torch_file(path, small_weights());
  seeds.push_back(testing::read_text(path));
  data::write_torch_file(path,
                         small_weights(),
                         data::ScalerState{{"scale", 65536.0}, {"growth_interval", int64_t{2000}}});
  seeds.push_back(testing::read_text(path));
  return seeds;
}

// In a file of its own a changed pickle has a wrong CRC.
void read_torch_pickle(std::string_view input) {
  (void)data::read_pickle(std::as_bytes(std::span(input)), "file");
}

std::vector<std::string> torch_pickle_seeds() {
  std::vector<std::string> seeds;
  for (const std::string& file : torch_seeds()) {
    const data::ZipReader zip(as_file(file));
    for (const auto& [name, member] : zip.members()) {
      if (!name.ends_with("/data.pkl")) continue;
      std::string& seed = seeds.emplace_back(member.size, '\0');
      zip.read(name, std::as_writable_bytes(std::span(seed)));
    }
  }
  return seeds;
}

std::string text_of_bytes(const testing::Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string idx_images() {
  return text_of_bytes(testing::tiny_images(2));
}
std::string idx_labels() {
  return text_of_bytes(testing::tiny_labels(2));
}

// The first byte says which of the two files the rest is.
void read_idx(std::string_view input) {
  if (input.empty()) return;
  const bool is_images = (input.front() & 1) == 0;
  const std::string_view rest = input.substr(1);
  const data::IdxDataset set("idx",
                             as_file(is_images ? rest : idx_images(), "images"),
                             as_file(is_images ? idx_labels() : rest, "labels"));
  const data::ImageShape shape = set.image_shape();
  std::vector<uint8_t> pixels(static_cast<size_t>(shape.channels * shape.height * shape.width));
  for (int64_t i = 0; i < std::min<int64_t>(set.size(), 4); ++i) set.read(i, pixels);
}

std::vector<std::string> idx_seeds() {
  const auto zipped = scratch() / "seed.gz";
  testing::write_gzip(zipped, testing::tiny_labels(2));
  return {'\0' + idx_images(), '\1' + idx_labels(), '\1' + testing::read_text(zipped)};
}

// The first byte says whether zeros make up what is missing of a file's 30 MB.
void read_cifar10(std::string_view input) {
  if (input.empty()) return;
  const auto path = as_file(input.substr(1));
  if ((input.front() & 1) == 0) std::filesystem::resize_file(path, data::Cifar10::kFileBytes);
  const data::Cifar10 set("cifar10", {path});
  std::vector<uint8_t> pixels(3072);
  set.read(0, pixels);
  set.read(set.size() - 1, pixels);
}

std::vector<std::string> cifar10_seeds() {
  return {std::string("\0\3", 2), std::string("\1\3", 2), std::string("\0\xff", 2)};
}

// Records of two ranks, one after the other.
void read_flight_records(std::string_view input) {
  trainers::RunFlight run{.ranks = 2, .flights = {}, .problems = {}};
  const size_t half = input.size() / 2;
  for (const std::string_view part : {input.substr(0, half), input.substr(half)}) {
    run.flights.push_back(trainers::flight_of(std::as_bytes(std::span(part)), "file"));
  }
  check_message(trainers::describe_flight(run));
}

std::vector<std::string> flight_seeds() {
  std::string records;
  for (int rank = 0; rank < 2; ++rank) {
    FlightRecorder recorder(rank, 2, 7);
    recorder.enter_part(kStepSpan, 1);
    recorder.enter_load(0, "decode", 3, {});
    recorder.enter_layer("conv1", {}, {});
    recorder.enter_call(4, "bucket 0");
    if (rank == 0) recorder.begin_wait(4, "bucket 0");
    records.append(reinterpret_cast<const char*>(&recorder.record()), sizeof(FlightRecord));
  }
  return {records};
}

constexpr Target kFileTargets[] = {
    {"safetensors", read_weights, weights_seeds},
    {"torch_file", read_torch, torch_seeds},
    {"torch_pickle", read_torch_pickle, torch_pickle_seeds},
    {"idx", read_idx, idx_seeds},
    {"cifar10", read_cifar10, cifar10_seeds},
    {"flight", read_flight_records, flight_seeds},
};

}  // namespace

std::span<const Target> file_targets() {
  return kFileTargets;
}

}  // namespace lockstep::fuzz
