#include "trainers/report/tricks_lines.h"

#include <fmt/core.h>

namespace lockstep::trainers {
namespace {

std::string python_repr(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // else "0", no "1e-05", "nan"
  return text;
}

}  // namespace

std::vector<std::string> tricks_start_lines(int64_t ranks, const std::string& name) {
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(ranks) + 1);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    lines.push_back(fmt::format("Running DDP on rank: {}", rank));
  }
  lines.push_back(fmt::format("Now Training: {}", name));
  return lines;
}

std::string tricks_epoch_line(const TricksEpoch& epoch) {
  constexpr double kPercent = 100;
  return fmt::format(
      "epoch: {:03d}/{}, time: {:.2f}s, learning_rate: {}, train_loss: {:.4f}, train_acc: {:.4f}, "
      "valid_loss: {:.4f}, valid_acc: {:.4f}",
      epoch.number,
      epoch.epochs,
      epoch.seconds,
      python_repr(epoch.lr),
      epoch.train_loss,
      epoch.train_acc1 / kPercent,
      epoch.test.loss,
      epoch.test.acc1() / kPercent);
}

std::string tricks_cut_line(int64_t epoch, double lr) {
  return fmt::format("Epoch {:5d}: reducing learning rate of group 0 to {:.4e}.", epoch + 1, lr);
}

}  // namespace lockstep::trainers
