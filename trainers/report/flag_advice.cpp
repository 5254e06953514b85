#include "trainers/report/flag_advice.h"

namespace lockstep::trainers {

std::string_view trainer_advice(Remedy remedy) {
  switch (remedy) {
    case Remedy::kNone:
      return {};
    case Remedy::kCpu:
      return "or --device cpu";
    case Remedy::kCuda:
      return "or --device cuda";
    case Remedy::kSmallerBatch:
      return "-b sets the batch";
    case Remedy::kEnginesByRule:
      return "training without --autotune goes by rule";
    case Remedy::kPlanFile:
      return "--plan-file names another, --autotune makes one";
    case Remedy::kMpi:
      return "--transport mpi does, and auto chooses it by itself";
    case Remedy::kHostExchange:
      return "or --transport shm or mpi";
    case Remedy::kIpcExchange:
      return "or --transport ipc, shm or mpi";
    case Remedy::kAlgorithm:
      return "--algorithm names it";
    case Remedy::kLongerWait:
      return "--stall-abort SECONDS waits longer";
    case Remedy::kUnusedZero:
      return "--unused zero counts them as zero";
    case Remedy::kDigits:
      return "--data names another folder, --dataset digits is built in";
    case Remedy::kShapes:
      return "--data names another folder, --dataset shapes is built in";
    case Remedy::kDataset:
      return "--data names the folder, --dataset the data set in it";
  }
  return {};
}

std::string_view tool_advice(Remedy remedy) {
  if (remedy != Remedy::kPlanFile) return {};
  return "lockstep plan --plan-file names another, the trainers' --autotune makes one";
}

}  // namespace lockstep::trainers
