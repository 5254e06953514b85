#include "trainers/model/early_stopping.h"

#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/words.h"

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
  try {
    const auto json = nlohmann::json::parse(state);
    worse_epochs_ = json.at("worse_epochs").get<int64_t>();
    if (json.contains("best")) best_ = json.at("best").get<double>();
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(fmt::format("the state of --early-stopping is '{}'", printable(state)),
                          error.what(),
                          "another checkpoint");
  }
}

}  // namespace lockstep::trainers
