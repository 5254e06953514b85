#include "trainers/cli/run_data.h"

#include <span>

#include "comm/handshake.h"
#include "trainers/loop/training_data.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers {

RunData open_data(const RunRequest& request,
                  const std::optional<Fault>& fault,
                  Communicator& ranks) {
  RunData data;
  const bool is_others = fault && !fault->strikes(ranks.rank());
  const auto open = [&] {
    data.sets = open_training_data(request, is_others ? std::nullopt : fault);
    if (data.sets.train) data.digest = data.sets.train->digest();
    data.digest += data.sets.test->digest();
    if (!request.no_eval) data.note = note_on_absent_classes(*data.sets.test);
  };
  on_all_ranks(ranks, open, "opening the data");
  const comm::HandshakeField same = {comm::HandshakeField::Kind::kEnvironment, "data", data.digest};
  comm::handshake(ranks, std::span(&same, 1));
  return data;
}

}  // namespace lockstep::trainers
