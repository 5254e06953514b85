#include "trainers/planner/plan_file.h"

#include <fmt/core.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "trainers/config/file_json.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers {
namespace {

constexpr const char* kHint = "another --plan-file; --autotune makes one";

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw EnvironmentError(fmt::format("cannot use {} as a plan file", file), why, kHint);
}

PlanFile plans_of(const OrderedFileJson& json, const std::string& file) {
  const int version = json.at("format_version").get<int>();
  if (version != PlanFile::kFormatVersion) {
    refuse(
        file,
        fmt::format(
            "its format has version {}, this program reads {}", version, PlanFile::kFormatVersion));
  }
  PlanFile plans{.origin = {.cudnn = json.at("cudnn"), .card = json.at("card")}, .engines = {}};
  for (const auto& [problem, found] :
       json.at("convolutions").get_ref<const OrderedFileJson::object_t&>()) {
    plans.engines[problem] = {.engine = found.at("engine"),
                              .microseconds = found.at("microseconds"),
                              .rule_microseconds = found.at("rule_microseconds"),
                              .workspace_bytes = found.at("workspace_bytes")};
  }
  return plans;
}

}  // namespace

std::string to_json(const PlanFile& plans) {
  OrderedFileJson json = {{"format_version", PlanFile::kFormatVersion},
                          {"cudnn", plans.origin.cudnn},
                          {"card", plans.origin.card},
                          {"convolutions", OrderedFileJson::object()}};
  for (const auto& [problem, found] : plans.engines) {
    json["convolutions"][problem] = {{"engine", found.engine},
                                     {"microseconds", found.microseconds},
                                     {"rule_microseconds", found.rule_microseconds},
                                     {"workspace_bytes", found.workspace_bytes}};
  }
  return json.dump(2, ' ', false, OrderedFileJson::error_handler_t::replace) + "\n";
}

PlanFile parse_plans(const std::string& text, const std::string& file) {
  try {
    return plans_of(parse_file<OrderedFileJson>(text), file);
  } catch (const OrderedFileJson::exception& error) {
    refuse(file, fmt::format("it is damaged or no plan file: {}", printable(error.what())));
  }
}

PlanFile read_plans(const std::filesystem::path& file) {
  const std::optional<std::string> text = contents_of(file, kMostBytes);
  if (!text)
    refuse(file.string(), "it is not there, too large, or nothing that this user may read");
  return parse_plans(*text, file.string());
}

void check_origin(const PlanFile& plans, const PlanOrigin& current, const std::string& file) {
  if (plans.origin == current) return;
  throw EnvironmentError(
      fmt::format("the plan file {} is stale", file),
      fmt::format("its engines were timed by cuDNN {} on {}, here are cuDNN {} and {}",
                  printable(plans.origin.cudnn),
                  printable(plans.origin.card),
                  current.cudnn,
                  current.card),
      "--autotune to time them again, or no --plan-file: cuDNN's own order");
}

std::string digest_of(const PlannedEngines& engines) {
  if (engines.empty()) return "";
  Digest all;
  for (const auto& [problem, found] : engines) {
    for (const std::string& text : {problem, found.engine}) {
      all.update(uint64_t{text.size()});
      all.update(text);
    }
  }
  return to_hex(all.value());
}

}  // namespace lockstep::trainers
