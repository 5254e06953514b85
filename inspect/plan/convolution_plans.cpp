#include "inspect/plan/convolution_plans.h"

#include "kernels/conv/conv2d_cudnn.h"

namespace lockstep::trainers {

PlannedEngines read_engines(const std::string& plan_file, const GpuCard& card) {
  const PlanFile plans = read_plans(plan_file);
  check_origin(plans, {.cudnn = kernels::cudnn::version(), .card = device_text(card)}, plan_file);
  return plans.engines;
}

}  // namespace lockstep::trainers
