#include "inspect/plan/gpu_card.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/input_file.h"
#include "trainers/config/file_json.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers {
namespace {

constexpr int64_t kGB = 1'000'000'000;
constexpr double kG = 1e9, kT = 1e12;

// SXM modules. Sources: NVIDIA's data sheets of A100 80GB, H100, H200 and B200; CUDA Programming
// Guide, compute capabilities.
const std::array<GpuCard, 4>& cards() {
  static const std::array<GpuCard, 4> all = {
      {{"A100", 108, 80, 80 * kGB, 40 << 20, 166'912, 2039 * kG, 312 * kT, 19.5 * kT, 300 * kG},
       {"H100", 132, 90, 80 * kGB, 50 << 20, 232'448, 3350 * kG, 989 * kT, 67 * kT, 450 * kG},
       {"H200", 132, 90, 141 * kGB, 60 << 20, 232'448, 4800 * kG, 989 * kT, 67 * kT, 450 * kG},
       {"B200", 148, 100, 180 * kGB, 126 << 20, 232'448, 8000 * kG, 2250 * kT, 75 * kT, 900 * kG}}};
  return all;
}

std::string upper(std::string text) {
  std::ranges::transform(
      text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

FileJson read_properties(const std::string& path) {
  const std::string text = contents_of(path, kMostBytes).value_or("");
  try {
    FileJson json = parse_file<FileJson>(text);
    json.at("deviceName").get_ref<const std::string&>();
    json.value("totalGlobalMem", int64_t{0});
    json.value("multiProcessorCount", 0);
    return json;
  } catch (const FileJson::exception&) {
    throw EnvironmentError(fmt::format("--gpu {}: the file does not describe a GPU", path),
                           "it is not JSON with a deviceName, or has bad numbers",
                           "a file that bench/gpu_suite.sh saved, or --gpu h200");
  }
}

// The properties as cuDNN 9.19 writes them on a card.
std::string cudnn_properties(const GpuCard& card) {
  constexpr int kRegisters = 65536;
  return nlohmann::json{{"deviceName", "NVIDIA " + card.name},
                        {"deviceVer", card.compute_capability * 10},
                        {"multiProcessorCount", card.multiprocessors},
                        {"totalGlobalMem", card.memory_bytes},
                        {"l2CacheSize", card.l2_bytes},
                        {"maxSharedMemoryPerBlockOptin", card.shared_bytes_per_block},
                        {"maxSharedMemoryPerBlock", 48 << 10},
                        {"reservedSharedMemoryPerBlock", 1024},
                        {"regsPerBlock", kRegisters},
                        {"maxRegistersPerSM", kRegisters},
                        {"maxGridSize", {2147483647, 65535, 65535}},
                        {"maxBlockSize", {1024, 1024, 64}},
                        {"maxThreadsPerBlock", 1024},
                        {"maxThreadsPerSM", 2048},
                        {"maxCtasPerSM", 32},
                        {"warpSize", 32},
                        {"smClockRateKHz", 1'980'000},
                        {"memClockRateKHz", 3'201'000},
                        {"supportCoopLaunch", 1},
                        {"isTccDriver", 0},
                        {"pciDeviceId", 0},
                        {"cudaDeviceId", 0},
                        {"driverVer", 13000}}
      .dump();
}

}  // namespace

GpuCard find_gpu(const std::string& gpu) {
  const bool is_file = std::filesystem::is_regular_file(gpu);
  const FileJson properties = is_file ? read_properties(gpu) : FileJson::object();
  const std::string name = upper(is_file ? properties["deviceName"].get<std::string>() : gpu);
  std::string known;
  for (GpuCard card : cards()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", card.name);
    if (is_file ? name.find(card.name) == std::string::npos : name != card.name) continue;
    card.memory_bytes = properties.value("totalGlobalMem", card.memory_bytes);
    card.multiprocessors = properties.value("multiProcessorCount", card.multiprocessors);
    card.cudnn_properties = is_file ? properties.dump() : cudnn_properties(card);
    return card;
  }
  throw UsageError(is_file ? fmt::format("--gpu {}: a {} is not known here", gpu, name)
                           : fmt::format("--gpu {}: there is no such card or file", gpu),
                   fmt::format("bandwidth and peaks are known of {}", known),
                   "--gpu h200, or the nearest of these");
}

std::string device_text(const GpuCard& card) {
  const auto properties = nlohmann::json::parse(card.cudnn_properties);
  return fmt::format(
      "{} (sm_{})", properties["deviceName"].get<std::string>(), card.compute_capability);
}

}  // namespace lockstep::trainers
