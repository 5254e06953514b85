// A Trainer's files: weights, and the state of a training.
#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/error.h"
#include "core/json_list.h"
#include "core/words.h"
#include "engine/state/class_names.h"
#include "engine/state/weights_file.h"
#include "engine/trainer_impl.h"

namespace lockstep {
namespace {

// "bees", as files record the names of class folders.
std::vector<std::string> printable_names(const data::Dataset& images) {
  std::vector<std::string> names = images.class_names();
  for (std::string& name : names) name = printable(name, std::string::npos);
  return names;
}

Error known_error(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return EnvironmentError("out of memory", "a file needs more", "a machine with more memory");
  }
  return EnvironmentError(error.what(), "the system refused", "another file or folder");
}

// Calls body() on rank 0. Errors: on all ranks CheckpointError where it throws that, else
// EnvironmentError.
void on_rank_0(Communicator& ranks, FunctionRef<void()> body) {
  std::string parts[3];
  auto code = ExitCode::kDone;
  if (ranks.rank() == 0) {
    try {
      body();
    } catch (const std::exception& error) {
      const Error known = known_error(error);
      code = known.code();
      parts[0] = known.what();
      parts[1] = known.why();
      parts[2] = known.hint();
    }
  }
  ranks.broadcast(std::as_writable_bytes(std::span(&code, 1)), 0);
  if (code == ExitCode::kDone) return;
  for (std::string& part : parts) part = comm::broadcast_text(ranks, part);
  if (code == ExitCode::kCheckpoint) throw CheckpointError(parts[0], parts[1], parts[2]);
  throw EnvironmentError(parts[0], parts[1], parts[2]);
}

}  // namespace

void Trainer::save(const std::filesystem::path& file) {
  impl_->training->share_buffers();
  on_rank_0(impl_->inputs.ranks, [&] {
    write_safetensors(file,
                      {.tensors = file_tensors(impl_->inputs.model.state()),
                       .metadata = {{"format", "pt"}, {kVersionKey, format_version()}}});
  });
}

void Trainer::save_logits(const std::filesystem::path& file) {
  const Safetensors rows = logits();
  on_rank_0(impl_->inputs.ranks, [&] { write_safetensors(file, rows); });
}

std::map<std::string, std::string> Trainer::Impl::read(const std::filesystem::path& file,
                                                       Classifier classifier) {
  std::map<std::string, std::string> metadata;
  on_rank_0(inputs.ranks, [&] {
    WeightsFile weights(file);
    weights.load_into(inputs.model, classifier);
    metadata = weights.metadata();
  });
  training->share_weights();
  return metadata;
}

void Trainer::load(const std::filesystem::path& file) {
  const auto metadata = impl_->read(file, Classifier::kMustFit);
  const auto evaluation = metadata.find(kEvaluationKey);
  if (evaluation == metadata.end()) return;
  const auto other = other_class(printable_names(*impl_->data.test),
                                 strings_under(evaluation->second, "class_names"),
                                 file.string());
  if (other) impl_->say("lockstep: warning: " + *other);
}

void Trainer::load_all_but_classifier(const std::filesystem::path& file) {
  impl_->read(file, Classifier::kMayStartFresh);
}

std::map<std::string, std::string> Trainer::Impl::fixed_settings() const {
  return {{"batch", std::to_string(batch.images)},
          {"shards", std::to_string(batch.shards)},
          {"batch_norm_groups", std::to_string(batch.bn_groups)},
          {"seed", std::to_string(settings.seeds.run)},
          {"training images", data.train->digest()}};
}

TrainingState Trainer::Impl::state() const {
  const WeightUpdate& update = training->update();
  TrainingState state{.model = file_tensors(inputs.model.state()),
                      .optimizer = file_tensors(update.optimizer().state()),
                      .position = {},
                      .settings = fixed_settings()};
  state.position.steps = training->steps();
  state.position.epoch = evaluated_epochs;
  update.describe(state.position);
  return state;
}

void Trainer::save_state(const std::filesystem::path& file) {
  impl_->training->share_buffers();
  on_rank_0(impl_->inputs.ranks, [&] { write_safetensors(file, to_file(impl_->state())); });
}

void Trainer::Impl::check_fits(const TrainingState& read, const std::string& file) const {
  const std::string problem = fmt::format("{} is another training's state", file);
  for (const auto& [name, value] : fixed_settings()) {
    const auto found = read.settings.find(name);
    const std::string other = found == read.settings.end() ? "not known" : found->second;
    if (other == value) continue;
    throw CheckpointError(problem,
                          fmt::format("{} is {}, was {}", name, value, printable(other)),
                          "the options and images of that training");
  }
  const auto check = [&](const std::vector<nn::StateEntry>& entries, const FileTensors& tensors) {
    const std::vector<std::string> found = mismatches(entries, tensors);
    if (found.empty()) return;
    throw CheckpointError(
        problem,
        fmt::format("it has tensors of other names, shapes or types: {}", first_of(found)),
        "the network, optimizer and precision of that training");
  };
  check(inputs.model.state(), read.model);
  check(training->update().optimizer().state(), read.optimizer);
}

void Trainer::load_state(const std::filesystem::path& file) {
  TrainingState state;
  on_rank_0(impl_->inputs.ranks, [&] {
    state = training_state_of(read_safetensors(file), file.string());
    impl_->check_fits(state, file.string());
    if (state.position.steps > end()) {
      throw CheckpointError(
          fmt::format("{} is past the end of this training", file.string()),
          fmt::format("it has taken {} steps, and this one has {}", state.position.steps, end()),
          "more epochs");
    }
  });
  impl_->go_on(state);
}

void Trainer::Impl::go_on(const TrainingState& state) {
  std::string texts;
  for (const auto& [key, value] : to_texts(state.position)) {
    texts += fmt::format("{}\n{}\n", key, value);
  }
  texts = comm::broadcast_text(inputs.ranks, texts);
  std::map<std::string, std::string> known;
  const std::vector<std::string_view> lines = split_words(texts, '\n');
  for (size_t i = 0; i + 1 < lines.size(); i += 2) known.emplace(lines[i], lines[i + 1]);
  TrainingPosition position = position_of(known, "rank 0's state");
  evaluated_epochs = position.epoch;
  const int64_t per_epoch = training->range().per_epoch;
  position.epoch = position.steps / per_epoch;
  position.sums.steps = position.steps % per_epoch;
  begin(position);
  if (inputs.ranks.rank() == 0) {
    copy_into(inputs.model.state(), state.model);
    copy_into(training->update().optimizer().state(), state.optimizer);
  }
  training->share_weights();
}

}  // namespace lockstep
