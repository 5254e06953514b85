#include "tests/support/golden.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;

Json at_path(const std::string& parameters, const std::string& path) {
  return Json::parse(parameters).at(Json::json_pointer("/" + path));
}

}  // namespace

std::filesystem::path golden_folder() {
  const char* const moved = std::getenv("LOCKSTEP_GOLDEN_DIR");
  return moved == nullptr ? LOCKSTEP_GOLDEN_DIR : moved;
}

GoldenCase::GoldenCase(const Safetensors& file, std::string parameters_json)
    : file_(&file), parameters_(std::move(parameters_json)) {}

std::string GoldenCase::name() const {
  return text("name");
}

bool GoldenCase::has(const std::string& tensor) const {
  return file_->tensors.contains(name() + "." + tensor);
}

Tensor GoldenCase::tensor(const std::string& tensor) const {
  const auto found = file_->tensors.find(name() + "." + tensor);
  if (found == file_->tensors.end()) {
    throw std::out_of_range("no golden tensor " + name() + "." + tensor);
  }
  return from_row_major(found->second);
}

double GoldenCase::number(const std::string& parameter) const {
  const Json value = at_path(parameters_, parameter);
  return value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>();
}

std::string GoldenCase::text(const std::string& parameter) const {
  return at_path(parameters_, parameter).get<std::string>();
}

const Safetensors& golden_file(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& files = *new std::map<std::string, Safetensors>;
  const std::lock_guard lock(mutex);
  const auto found = files.find(name);
  if (found != files.end()) return found->second;
  const auto path = golden_folder() / (name + ".safetensors");
  return files.emplace(name, read_safetensors(path)).first->second;
}

std::vector<GoldenCase> golden_cases(const std::string& name) {
  const Safetensors& file = golden_file(name);
  std::vector<GoldenCase> cases;
  for (const Json& parameters : Json::parse(file.metadata.at("cases"))) {
    cases.emplace_back(file, parameters.dump());
  }
  if (cases.empty()) throw std::out_of_range("no golden cases in " + name);  // a loop tests nothing
  return cases;
}

GoldenCase golden_case(const std::string& file, const std::string& name) {
  for (GoldenCase& golden : golden_cases(file)) {
    if (golden.name() == name) return std::move(golden);
  }
  throw std::out_of_range("no golden case " + name + " in " + file);
}

}  // namespace lockstep::testing
