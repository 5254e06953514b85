#include "trainers/cli/run_data.h"

#include <span>

#include <fmt/core.h>

#include "comm/handshake.h"
#include "data/class_folders.h"
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
  };
  run_or_end_all_ranks(ranks, open, "opening the data");
  const comm::HandshakeField same = {comm::HandshakeField::Kind::kEnvironment, "data", data.digest};
  comm::handshake(ranks, std::span(&same, 1));
  return data;
}

std::map<std::string, std::map<std::string, int64_t>> left_out_of(const RunData& data) {
  std::map<std::string, std::map<std::string, int64_t>> left;
  for (const auto& split : {data.sets.train, data.sets.test}) {
    if (split && !split->left_out().empty()) left[split->name()] = split->left_out();
  }
  return left;
}

std::vector<std::string> notes_on(const RunData& data, bool evaluates) {
  std::vector<std::string> notes;
  for (const auto& [split, left] : left_out_of(data)) {
    const std::string files = data::describe_left(left);
    if (!files.empty()) notes.push_back(fmt::format("note: {} leaves out {}", split, files));
  }
  const auto absent = evaluates ? note_on_absent_classes(*data.sets.test) : std::nullopt;
  if (absent) notes.push_back(*absent);
  return notes;
}

}  // namespace lockstep::trainers
