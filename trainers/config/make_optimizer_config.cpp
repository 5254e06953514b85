#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "engine/settings/choice_names.h"
#include "engine/update/schedule_rows.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

constexpr std::array kOptimizers = {std::pair{OptimizerKind::kSgd, "sgd"},
                                    std::pair{OptimizerKind::kAdam, "adam"},
                                    std::pair{OptimizerKind::kAdamW, "adamw"},
                                    std::pair{OptimizerKind::kMuon, "muon"},
                                    std::pair{OptimizerKind::kLamb, "lamb"}};
constexpr std::array kWarmups = {std::pair{WarmupMethod::kLinear, "linear"},
                                 std::pair{WarmupMethod::kFromOne, "from-one"},
                                 std::pair{WarmupMethod::kApex, "apex"},
                                 std::pair{WarmupMethod::kFrozenCosine, "frozen-cosine"}};
constexpr std::array kVariants = {std::pair{nn::LookaheadVariant::kAlphadl, "alphadl"},
                                  std::pair{nn::LookaheadVariant::kPaper, "paper"},
                                  std::pair{nn::LookaheadVariant::kAirbench, "airbench"}};
constexpr std::array kMuonDtypes = {std::pair{Dtype::kF32, "f32"}, std::pair{Dtype::kBF16, "bf16"}};

std::vector<int64_t> parse_milestones(const Options& options) {
  const Setting* setting = options.find("lr-milestones");
  if (setting == nullptr) return {};
  std::vector<int64_t> milestones;
  for (const std::string_view word : split_words(setting->value, ',')) {
    const auto epoch = parse_int(word);
    if (!epoch || *epoch < 1 || (!milestones.empty() && *epoch <= milestones.back())) {
      throw UsageError(fmt::format("bad value: --lr-milestones {}", setting->value),
                       "--lr-milestones takes ascending epochs from 1, separated by commas",
                       "--lr-milestones 100,150");
    }
    milestones.push_back(*epoch);
  }
  return milestones;
}

PlateauOptions make_plateau_config(const Options& options) {
  const std::string& metric = options.text("plateau-on");
  const Setting* mode = options.find("plateau-mode");
  return {.patience = options.integer("plateau-patience"),
          .threshold = options.number("plateau-threshold"),
          .on_accuracy = metric == "acc",
          .upwards = mode == nullptr ? metric == "acc" : mode->value == "max"};
}

double min_factor(const Options& options) {
  if (options.text("lr-scheduler") != "cosine") return 0;
  const double lr = options.number("lr");
  const double min_lr = options.number("min-lr");
  if (min_lr <= lr) return lr > 0 ? min_lr / lr : 0;
  throw UsageError(fmt::format("--min-lr {:g} is above --lr {:g}", min_lr, lr),
                   "the rate falls from one to the other",
                   "--min-lr 1e-6, or a greater --lr");
}

LrUnit make_lr_unit(const Options& options) {
  const bool scale_lr = options.boolean("scale-lr");
  if (!options.boolean("lr-per-1024")) return scale_lr ? LrUnit::k256Images : LrUnit::kStep;
  if (!scale_lr) return LrUnit::k1024Images;
  throw UsageError("--lr-per-1024 and --scale-lr contradict each other",
                   "one gives the rate for 1,024 images, the other for 256",
                   "one of them alone");
}

ScheduleOptions make_schedule_config(const Options& options) {
  const std::span<const ScheduleRow> rows = schedule_rows();
  const auto row = std::ranges::find(rows, options.text("lr-scheduler"), &ScheduleRow::name);
  return {.kind = row->kind,
          .on_updates = options.boolean("sched-on-updates"),
          .step_epochs = options.integer("lr-step-size"),
          .milestones = parse_milestones(options),
          .gamma = options.number("lr-gamma"),
          .power = options.number("poly-power"),
          .min_factor = min_factor(options),
          .one_cycle = {.pct_start = options.number("onecycle-pct-start"),
                        .div = options.number("onecycle-div-factor"),
                        .final_div = options.number("onecycle-final-div-factor")},
          .triangular = {.start = options.number("triangular-start"),
                         .peak = options.number("triangular-peak"),
                         .end = options.number("triangular-end")},
          .warmup_epochs = options.integer("warmup-epochs"),
          .warmup = {.method = value_of(kWarmups, options.text("warmup-method")),
                     .decay = options.number("warmup-decay"),
                     .is_prefix = options.boolean("warmup-prefix")},
          .plateau = make_plateau_config(options)};
}

std::optional<nn::LookaheadParams> make_lookahead(const Options& options) {
  if (!options.boolean("lookahead")) return std::nullopt;
  return nn::LookaheadParams{.k = options.integer("lookahead-k"),
                             .alpha = options.number("lookahead-alpha"),
                             .variant = value_of(kVariants, options.text("lookahead-variant"))};
}

std::optional<nn::LarcParams> make_larc(const Options& options) {
  if (!options.boolean("larc")) return std::nullopt;
  return nn::LarcParams{.trust_coefficient = options.number("trust-coefficient"),
                        .clip = options.boolean("larc-clip")};
}

void check_lr_unit(const OptimizerConfig& config) {
  if (config.lr_unit != LrUnit::k1024Images) return;
  if (config.kind != OptimizerKind::kSgd) {
    throw UsageError(
        "--lr-per-1024 needs --opt sgd",
        "it divides the rate by 1 + 1 / (1 - momentum), by which Nesterov's momentum multiplies a "
        "gradient",
        "--opt sgd, or no --lr-per-1024");
  }
  if (config.momentum == 1 || config.lr == 0) {
    throw UsageError(
        fmt::format("--lr-per-1024 with --momentum {:g} and --lr {:g}", config.momentum, config.lr),
        "it divides by 1 - momentum and by the rate",
        "--momentum 0.85 and a rate above 0");
  }
}

// `own_groups`: --param-groups is not a preset's.
void check(const OptimizerConfig& config, bool own_groups) {
  check_lr_unit(config);
  if (config.ema == 1) {
    throw UsageError(
        "--ema 1 averages nothing", "a decay of 1 would never change the average", "--ema 0.9999");
  }
  if (config.larc && config.kind != OptimizerKind::kSgd) {
    throw UsageError("--larc needs --opt sgd",
                     "it scales SGD's steps by gradient norms, on which the other optimizers' "
                     "steps do not depend",
                     "--opt sgd, or no --larc");
  }
  if (config.larc && config.larc->trust_coefficient == 0) {
    throw UsageError("--trust-coefficient 0 leaves all weights as they are",
                     "each learning rate is a multiple of it",
                     "--trust-coefficient 0.02");
  }
  for (const ParameterRule& rule : config.groups.rules) {
    if (rule.by_sgd && config.kind != OptimizerKind::kMuon) {
      throw UsageError(fmt::format("--param-groups: opt=sgd of '{}' would change nothing",
                                   printable(rule.pattern)),
                       "only --opt muon uses it",
                       "--opt muon beside it, or no opt=");
    }
    if (!rule.weight_decay || config.weight_decay > 0 || !own_groups) continue;
    throw UsageError(
        fmt::format("--param-groups: wd= of '{}' would change nothing", printable(rule.pattern)),
        "it is a factor on --weight-decay, which is 0",
        "--weight-decay 1e-4 beside it, or no wd=");
  }
  if (config.nesterov && config.momentum == 0) {
    throw UsageError("--nesterov needs a momentum above 0",
                     "Nesterov's step looks ahead along the momentum, which is 0",
                     "--momentum 0.9, or no --nesterov");
  }
  check_fits(config.schedule, [](std::string_view member) {
    return fmt::format("--{}",
                       std::ranges::find(schedule_flags(), member, &ScheduleFlag::member)->flag);
  });
}

void refuse_idle(std::string_view flag, std::string_view user) {
  throw UsageError(fmt::format("--{} would change nothing", flag),
                   "nothing in this run uses it",
                   fmt::format("{}; or leave --{} out", user, flag));
}

void refuse_idle_schedule_flags(const Options& options, const ScheduleRow& row) {
  for (const auto& [flag, member] : schedule_flags()) {
    const auto uses = [&](const ScheduleRow& each) { return each.uses(member); };
    const auto user = std::ranges::find_if(schedule_rows(), uses);
    if (user == schedule_rows().end() || uses(row) || !options.given(flag)) continue;
    refuse_idle(flag, fmt::format("--lr-scheduler {}", user->name));
  }
}

// A flag that was given and would be ignored is treated as a mistake.
void refuse_idle_flags(const Options& options, const OptimizerConfig& config) {
  const ScheduleRow& row = row_of(config.schedule.kind);
  const WarmupOptions& warmup = config.schedule.warmup;
  const int64_t warm = config.schedule.warmup_epochs;
  const bool has_momentum =
      config.kind == OptimizerKind::kSgd || config.kind == OptimizerKind::kMuon;
  const bool rises_linearly =
      warmup.method == WarmupMethod::kLinear || warmup.method == WarmupMethod::kFrozenCosine;
  const bool has_schedule = row.kind != ScheduleKind::kConstant || warm > 0;
  struct Use {
    std::string_view flag;
    bool used;
    std::string_view by;
  };
  for (const Use& use : {
           Use{"momentum", has_momentum, "--opt sgd"},
           Use{"nesterov", has_momentum || !config.nesterov, "--opt sgd"},
           Use{"muon-dtype", config.kind == OptimizerKind::kMuon, "--opt muon"},
           Use{"sched-on-updates", has_schedule, "--lr-scheduler cosine"},
           Use{"warmup-method", warm > 0, "--warmup-epochs 5"},
           Use{"warmup-decay",
               warm > 0 && rises_linearly,
               "--warmup-epochs 5 --warmup-method linear"},
           Use{"warmup-prefix",
               (warm > 0 && row.uses("warmup.is_prefix")) || warmup.is_prefix,
               "--warmup-epochs 5 --lr-scheduler cosine"},
           Use{"trust-coefficient", config.larc.has_value(), "--larc"},
           Use{"larc-clip", config.larc.has_value(), "--larc"},
           Use{"lookahead-k", config.lookahead.has_value(), "--lookahead"},
           Use{"lookahead-alpha", config.lookahead.has_value(), "--lookahead"},
           Use{"lookahead-variant", config.lookahead.has_value(), "--lookahead"},
       }) {
    if (use.used || !options.given(use.flag)) continue;
    refuse_idle(use.flag, use.by);
  }
  refuse_idle_schedule_flags(options, row);
}

}  // namespace

OptimizerConfig make_optimizer_config(const Options& options) {
  OptimizerConfig config;
  config.kind = value_of(kOptimizers, options.text("opt"));
  config.lr = options.number("lr");
  config.lr_unit = make_lr_unit(options);
  config.momentum = options.number("momentum");
  config.nesterov = options.boolean("nesterov");
  config.muon_dtype = value_of(kMuonDtypes, options.text("muon-dtype"));
  config.weight_decay = options.number("weight-decay");
  config.groups.bias_decay = options.boolean("bias-decay");
  if (const Setting* groups = options.find("param-groups")) {
    config.groups.rules = parse_parameter_rules(groups->value);
  }
  const double own_limit = config.kind == OptimizerKind::kLamb ? 1 : 0;
  const bool has_limit = options.find("clip-grad-norm") != nullptr;
  config.clip_grad_norm = has_limit ? options.number("clip-grad-norm") : own_limit;
  config.larc = make_larc(options);
  config.lookahead = make_lookahead(options);
  config.ema = options.number("ema");
  config.schedule = make_schedule_config(options);
  refuse_idle_flags(options, config);
  check(config, options.given("param-groups"));
  return config;
}

namespace {

[[noreturn]] void refuse_rule(std::string_view rule, const std::string& why) {
  throw UsageError(fmt::format("bad value: --param-groups '{}'", printable(rule)),
                   why,
                   "--param-groups \"*.bias lr=64 wd=0.015625; 0.bias epochs=3\"");
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words = split_words(text, ' ');
  std::erase(words, "");
  return words;
}

void read_setting(std::string_view rule, std::string_view word, ParameterRule& into) {
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (word == "opt=sgd") {
    into.by_sgd = true;
    return;
  }
  const bool is_factor = key == "lr" || key == "wd";
  if (!is_factor && key != "epochs") {
    refuse_rule(rule, "lr=X, wd=X, epochs=N and opt=sgd are what may follow a pattern");
  }
  if (!is_factor) {
    const std::optional<int64_t> epochs = parse_int(value);
    if (!epochs || *epochs < 0 || *epochs > kMaxEpochs) {
      refuse_rule(rule, "epochs takes a whole number from 0");
    }
    into.epochs = epochs;
    return;
  }
  const std::optional<double> factor = parse_float(value);
  if (!factor || *factor < 0) refuse_rule(rule, fmt::format("{} takes a number from 0", key));
  if (key == "lr") {
    into.lr = *factor;
  } else {
    into.weight_decay = factor;
  }
}

}  // namespace

std::vector<ParameterRule> parse_parameter_rules(std::string_view text) {
  std::vector<ParameterRule> rules;
  for (const std::string_view part : split_words(text, ';')) {
    const std::vector<std::string_view> words = words_of(part);
    if (words.empty()) continue;
    ParameterRule rule{.pattern = std::string(words.front())};
    if (words.size() == 1)
      refuse_rule(part, "a pattern without lr=, wd= or epochs= changes nothing");
    for (size_t i = 1; i < words.size(); ++i) read_setting(part, words[i], rule);
    rules.push_back(std::move(rule));
  }
  if (rules.empty()) refuse_rule(text, "it names no parameters");
  return rules;
}

}  // namespace lockstep::trainers
