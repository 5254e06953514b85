#include "trainers/model/early_stopping.h"

#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/words.h"
#include "trainers/config/file_json.h"

namespace lockstep::trainers {

void EarlyStopping::end_epoch(double loss) {
  if (loss <= best_ - config_.delta) {
    best_ = loss;
    worse_epochs_ = 0;
  } else {
    ++worse_epochs_;
  }
}

std::string EarlyStopping::state() const {
  if (!watches_validation()) return "";
  nlohmann::ordered_json json{{"worse_epochs", worse_epochs_}};
  if (std::isfinite(best_)) json["best"] = best_;
  return json.dump();
}

void EarlyStopping::restore(std::string_view state) {
  if (state.empty()) return;
  const auto refuse = [&](const std::string& why) {
    throw CheckpointError(fmt::format("the state of --early-stopping is '{}'", printable(state)),
                          printable(why),
                          "another checkpoint");
  };
  try {
    const auto json = parse_file<FileJson>(std::string(state));
    worse_epochs_ = json.at("worse_epochs").get<uint32_t>();
    if (json.contains("best")) best_ = json.at("best").get<double>();
  } catch (const FileJson::exception& error) {
    refuse(error.what());
  }
}

}  // namespace lockstep::trainers
