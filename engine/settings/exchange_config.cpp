#include "engine/settings/exchange_config.h"

namespace lockstep {

comm::ReducerOptions reducer_options(const ExchangeConfig& config, int64_t micro_steps) {
  return {.caps = config.caps,
          .algorithm = config.algorithm,
          .overlap = config.overlap,
          .wire = config.wire,
          .predivide = static_cast<float>(config.predivide),
          .micro_steps = micro_steps,
          .zero_unused = config.zero_unused};
}

std::string_view name_of(Algorithm algorithm) {
  return word_of(kAlgorithmNames, algorithm);
}

std::string_view algorithm_name(const ExchangeConfig& config) {
  const bool is_nccls =
      config.algorithm == Algorithm::kLibrary && config.on_device == DeviceTransport::kNccl;
  return is_nccls ? "nccl" : name_of(config.algorithm);
}

}  // namespace lockstep
