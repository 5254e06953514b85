#include "trainers/model/early_stopping.h"

#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/words.h"
#include "trainers/config/json_count.h"

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
    const auto json = nlohmann::json::parse(state);
    const std::optional<int64_t> worse = json_count(json.at("worse_epochs"));
    if (!worse) return refuse("worse_epochs is not a number of epochs");
    worse_epochs_ = *worse;
    if (json.contains("best")) best_ = json.at("best").get<double>();
  } catch (const nlohmann::json::exception& error) {
    refuse(error.what());
  }
}

}  // namespace lockstep::trainers
