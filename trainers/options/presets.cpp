#include "trainers/options/presets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>

#include <fmt/core.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/words.h"
#include "data/open_dataset.h"

namespace lockstep::trainers {
namespace {

template <size_t n, size_t m>
constexpr std::array<std::string_view, n + m> and_also(const std::string_view (&some)[n],
                                                       const std::string_view (&more)[m]) {
  std::array<std::string_view, n + m> all;
  std::copy_n(more, m, std::copy_n(some, n, all.begin()));
  return all;
}

// clang-format off
// Their scripts test once, at the end.
constexpr std::string_view kDemoBaseline[] = {
    "--arch=convnet", "--batch-size=32", "--lr=1e-4", "--momentum=0", "--epochs=3",
    "--normalize=none", "--eval-freq=1000000"};
constexpr std::string_view kDemoDdp[] = {
    "--arch=convnet", "--batch-size=32", "--lr=1e-4", "--momentum=0", "--epochs=3",
    "--normalize=none", "--sync-bn", "--amp", "--eval-freq=1000000"};
// DDP_warmup.py: its loop ends before the last epoch is saved as the best; its sampler shuffles by
// the epoch's number alone, whatever the seed.
constexpr std::string_view kDdpTricks[] = {
    "--arch=toy_net", "--batch-size=1024", "--val-batch-size=1024", "--epochs=500", "--lr=0.1",
    "--momentum=0.9", "--nesterov", "--lookahead", "--warmup-epochs=10", "--warmup-decay=0",
    "--sched-on-updates=false", "--lr-scheduler=plateau", "--plateau-patience=10",
    "--early-stopping=50", "--early-stopping-best=false", "--loss-div-batch", "--seed=42",
    "--seed-order=0", "--normalize=none", "--amp"};
// apex/examples/imagenet/main_amp.py: a rank's batch; the rate is that of 256 images per step.
constexpr std::string_view kApexImagenet[] = {
    "--arch=resnet18", "--batch-size=256", "--epochs=90", "--lr=0.1", "--scale-lr",
    "--momentum=0.9", "--weight-decay=1e-4", "--warmup-epochs=5", "--warmup-method=apex",
    "--warmup-prefix=false", "--lr-scheduler=multistep", "--lr-milestones=30,60,80",
    "--lr-gamma=0.1", "--workers=4", "--print-freq=10"};
// pytorch/examples' imagenet/main.py: the batch of all ranks, as on one host there.
constexpr std::string_view kImagenetMain[] = {
    "--arch=resnet18", "--global-batch-size=256", "--epochs=90", "--lr=0.1", "--momentum=0.9",
    "--weight-decay=1e-4", "--lr-scheduler=step", "--lr-step-size=30", "--lr-gamma=0.1",
    "--workers=4", "--print-freq=10"};
// github.com/KellerJordan/cifar10-airbench, legacy/airbench94.py, 95 and 96. Biases of norms learn
// 64 times as fast at the same decay, 0.bias is the whitening layer's, alpha is 1 - 0.95^5.
// An evaluation of six views costs a third of an epoch, so there is one, at the end.
constexpr std::string_view kAirbench[] = {
    "--global-batch-size=1024", "--drop-last", "--bn-groups=1", "--val-batch-size=1000",
    "--lr-per-1024", "--momentum=0.85", "--nesterov",
    "--param-groups=*.norm*.bias lr=64 wd=0.015625; 0.bias epochs=3",
    "--lr-scheduler=triangular", "--lookahead", "--lookahead-variant=airbench", "--lookahead-k=5",
    "--lookahead-alpha=0.2262190625", "--label-smoothing=0.2", "--flip=alternating",
    "--crop-pad-mode=reflect", "--tta=shift", "--eval-freq=1000",
    "--normalize=0.4914,0.4822,0.4465,0.2470,0.2435,0.2616"};
constexpr auto kCifar94 = and_also(kAirbench, {"--arch=airbench94", "--epochs=9.9", "--lr=11.5",
                                               "--weight-decay=0.0153", "--crop-pad=2"});
constexpr auto kCifar95 = and_also(kAirbench, {"--arch=airbench95", "--epochs=15", "--lr=10",
                                               "--weight-decay=0.0153", "--crop-pad=2"});
constexpr auto kCifar96 =
    and_also(kAirbench, {"--arch=airbench96", "--epochs=37", "--lr=9", "--weight-decay=0.012",
                         "--triangular-peak=0.1", "--triangular-end=0", "--crop-pad=4",
                         "--cutout=12"});
// github.com/libffcv/ffcv-imagenet, rn50_configs/rn50_16_epochs.yaml and the like: eight GPUs with
// 512 images each; the rate rises for two epochs. Decay is for what has no "bn" in its name, so the
// shortcuts' norms have it. Tests cut 224/256 of a photo and resize that to 256: 293 is 256 of it.
constexpr std::string_view kFfcv[] = {
    "--arch=resnet50", "--blur-pool", "--global-batch-size=4096", "--drop-last", "--amp",
    "--lr=1.7", "--momentum=0.9", "--weight-decay=1e-4", "--param-groups=*bn* wd=0",
    "--lr-scheduler=triangular", "--triangular-start=1e-4", "--triangular-end=0",
    "--label-smoothing=0.1", "--train-crop-size=192", "--res-from=160", "--val-resize-size=293",
    "--val-crop-size=256", "--val-batch-size=512", "--tta=flip", "--workers=12"};
constexpr auto kFfcv16 =
    and_also(kFfcv, {"--epochs=16", "--triangular-peak=0.125", "--res-epochs=11:13"});
constexpr auto kFfcv32 =
    and_also(kFfcv, {"--epochs=32", "--triangular-peak=0.0625", "--res-epochs=23:27"});
// 2/88, rounded up: the number of rising steps is rounded down.
constexpr auto kFfcv88 =
    and_also(kFfcv, {"--epochs=88", "--triangular-peak=0.0227273", "--res-epochs=65:76"});
// torchvision's references/classification/train.py, as its weights IMAGENET1K_V2 were trained
// (issue 3995 there): eight GPUs with 128 images each; norms are not decayed, fc.bias is. Its
// average takes each 32nd step with 1 - 2e-5 * 1024 * 32 / 600, of which ema is the 32nd root.
constexpr std::string_view kTorchvisionV2[] = {
    "--arch=resnet50", "--global-batch-size=1024", "--epochs=600", "--lr=0.5", "--momentum=0.9",
    "--weight-decay=2e-5", "--param-groups=*bn* wd=0; *downsample.1.* wd=0",
    "--lr-scheduler=cosine", "--sched-on-updates=false", "--warmup-epochs=5",
    "--label-smoothing=0.1", "--mixup=0.2", "--cutmix=1", "--auto-augment=ta_wide-bilinear",
    "--random-erase=0.1", "--aug-repeats=4", "--ema=0.999965848595", "--train-crop-size=176",
    "--val-resize-size=232", "--val-crop-size=224", "--val-batch-size=128", "--workers=16"};
// arXiv 2110.00476, table 2, and timm's train.py of its time: rates from warmup-lr 1e-4 to min-lr
// 1e-6; branches of residual blocks start at 0; tests resize to 224 / 0.95.
constexpr std::string_view kRsb[] = {
    "--arch=resnet50", "--zero-init-residual", "--global-batch-size=2048", "--drop-last", "--amp",
    "--opt=lamb", "--weight-decay=0.02", "--bias-decay=false", "--lr-scheduler=cosine",
    "--min-lr=1e-6", "--sched-on-updates=false", "--warmup-epochs=5", "--warmup-prefix=false",
    "--loss=bce", "--bce-target-thresh=0.2", "--mixup=0.1", "--cutmix=1", "--val-resize-size=235",
    "--val-crop-size=224", "--interpolation=bicubic", "--train-interpolation=random"};
constexpr auto kRsbA2 =
    and_also(kRsb, {"--epochs=300", "--lr=5e-3", "--warmup-decay=0.02", "--drop-path=0.05",
                    "--aug-repeats=3", "--auto-augment=rand-m7-mstd0.5-inc1",
                    "--train-crop-size=224"});
constexpr auto kRsbA3 =
    and_also(kRsb, {"--epochs=100", "--lr=8e-3", "--warmup-decay=0.0125",
                    "--auto-augment=rand-m6-mstd0.5-inc1", "--train-crop-size=160"});
constexpr NamedArguments kPresets[] = {
    {"demo-baseline", kDemoBaseline}, {"demo-ddp", kDemoDdp},
    {"ddp-tricks", kDdpTricks},
    {"apex-imagenet", kApexImagenet}, {"imagenet-main", kImagenetMain},
    {"torchvision-v2", kTorchvisionV2}, {"rsb-a2", kRsbA2}, {"rsb-a3", kRsbA3},
    {"ffcv-16", kFfcv16}, {"ffcv-32", kFfcv32}, {"ffcv-88", kFfcv88},
    {"cifar-94", kCifar94}, {"cifar-95", kCifar95}, {"cifar-96", kCifar96}};

constexpr std::string_view kShapes[] = {
    "--arch=resnet20", "--batch-size=16", "--epochs=4", "--lr-scheduler=cosine"};
constexpr std::string_view kCifar10[] = {"--arch=resnet20", "--batch-size=128"};
constexpr NamedArguments kResnetData[] = {{"shapes", kShapes}, {"cifar10", kCifar10}};
// clang-format on

}  // namespace

Arguments preset_named(std::string_view name) {
  for (const NamedArguments& preset : kPresets) {
    if (preset.name == name) return preset.arguments;
  }
  throw InternalError(fmt::format("[preset] name: got {}, expected one of the table", name));
}

std::span<const NamedArguments> data_defaults(Program program) {
  if (program == Program::kTrainConvnet) return {};
  return kResnetData;
}

std::string_view built_in_dataset(Program program) {
  return program == Program::kTrainConvnet ? "digits" : "shapes";
}

std::string dataset_name(Program program, const std::string& name, const std::string& dir) {
  if (name != "auto") return name;
  if (dir.empty()) return std::string(built_in_dataset(program));
  try {
    return data::detect_dataset(dir, program == Program::kTrainConvnet ? 1 : 3);
  } catch (const DataError&) {
    return name;
  }
}

namespace {

struct Spelling {
  std::string_view theirs;  // all of a flag's, in long ones - for _: "-s --seed-num"
  std::string_view ours;
};

// Parts of --output-dir: FOLDER/NAME.
constexpr std::string_view kName = "NAME";
constexpr std::string_view kFolder = "FOLDER";

constexpr Spelling kDemoFlags[] = {{"-e", "--epochs"}};
// A batch of that script's training is one of its tests too.
constexpr Spelling kTricksFlags[] = {{"-n -en --exp-name", kName},
                                     {"-p --model-path", kFolder},
                                     {"-l", "--lr"},
                                     {"-b --batch-size", "--batch-size --val-batch-size"},
                                     {"-e", "--epochs"},
                                     {"-w", "--warmup-epochs"},
                                     {"-t --warmup-type", "--warmup-method"},
                                     {"-s --seed-num", "--seed"},
                                     {"-d", "--data"}};

struct PresetSpelling {
  std::string_view preset;
  std::span<const Spelling> flags;
};
constexpr PresetSpelling kPresetSpellings[] = {
    {"demo-baseline", kDemoFlags}, {"demo-ddp", kDemoFlags}, {"ddp-tricks", kTricksFlags}};

std::span<const Spelling> spellings_of(std::string_view preset) {
  const auto* const found = std::ranges::find(kPresetSpellings, preset, &PresetSpelling::preset);
  return found == std::end(kPresetSpellings) ? std::span<const Spelling>() : found->flags;
}

// A flag and the value that is part of the same argument.
struct Split {
  std::string_view ours;
  std::optional<std::string> value;
};

// "-e=3", "-e3", "--seed_num=3", "-e" alone.
std::optional<Split> split(std::span<const Spelling> spellings, const std::string& argument) {
  const size_t equals = argument.find('=');
  std::string name = argument.substr(0, equals);
  if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '_', '-');
  for (const Spelling& spelling : spellings) {
    if (std::ranges::count(split_words(spelling.theirs, ' '), name) == 0) continue;
    if (equals == std::string::npos) return Split{spelling.ours, std::nullopt};
    return Split{spelling.ours, argument.substr(equals + 1)};
  }
  if (argument.size() < 3 || argument.starts_with("--") || equals == 2) return std::nullopt;
  const std::optional<Split> letter = split(spellings, argument.substr(0, 2));
  return letter ? std::optional(Split{letter->ours, argument.substr(2)}) : std::nullopt;
}

// The run directory, as its two parts name it.
class RunName {
 public:
  void take(std::string_view part, const std::string& value) {
    given_ = true;
    missing_ |= value.empty() || value.starts_with("--");
    (part == kName ? name_ : folder_) = value;
  }
  void add_to(std::vector<std::string>& arguments) const {
    if (!given_) return;
    const std::string slash = folder_.ends_with('/') ? "" : "/";
    const std::string directory = missing_ ? "" : folder_ + slash + name_;
    arguments.insert(arguments.begin(), "--output-dir=" + directory);  // gives way to a later one
  }

 private:
  std::string folder_ = "experiment_model";
  std::string name_ = "DDP_warmup";
  bool given_ = false;
  bool missing_ = false;
};

}  // namespace

std::string_view preset_with(std::string_view name) {
  for (const PresetSpelling& preset : kPresetSpellings) {
    for (const Spelling& spelling : preset.flags) {
      if (std::ranges::count(split_words(spelling.theirs, ' '), name) > 0) return preset.preset;
    }
  }
  return {};
}

std::vector<std::string> values_in(const std::vector<std::string>& arguments,
                                   std::string_view names) {
  std::vector<std::string> values;
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    if (std::ranges::count(split_words(names, ' '), argument.substr(0, equals)) == 0) continue;
    if (equals != std::string::npos) {
      values.push_back(argument.substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      values.push_back(arguments[i + 1]);
    }
  }
  return values;
}

std::string value_in(const std::vector<std::string>& arguments,
                     std::string_view names,
                     std::string_view otherwise) {
  const std::vector<std::string> values = values_in(arguments, names);
  return values.empty() ? std::string(otherwise) : values.back();
}

std::vector<std::string> respelled(std::string_view preset, std::vector<std::string> arguments) {
  const std::span<const Spelling> spellings = spellings_of(preset);
  if (spellings.empty()) return arguments;
  std::vector<std::string> result;
  RunName run;
  auto next = arguments.begin();
  while (next != arguments.end() && *next != "--") {
    const std::string& argument = *next++;
    const std::optional<Split> flag = split(spellings, argument);
    const bool number_follows = next != arguments.end() && parse_float(*next);
    if (!flag || (argument == "-e" && !number_follows)) {
      result.push_back(argument);
      continue;
    }
    std::string value = flag->value.value_or("");
    if (!flag->value && next != arguments.end()) value = *next++;
    if (flag->ours == "--warmup-method" && value == "cosine") value = "frozen-cosine";
    if (flag->ours == kName || flag->ours == kFolder) {
      run.take(flag->ours, value);
      continue;
    }
    for (const std::string_view ours : split_words(flag->ours, ' ')) {
      result.push_back(fmt::format("{}={}", ours, value));
    }
  }
  result.insert(result.end(), next, arguments.end());
  run.add_to(result);
  return result;
}

std::string spelling_help(Program program) {
  constexpr size_t kColumns = 100;
  const auto presets = split_words(find_flag("--preset")->choices.of(program), '|');
  std::string text;
  for (const PresetSpelling& preset : kPresetSpellings) {
    if (std::ranges::count(presets, preset.preset) == 0) continue;
    std::string line = fmt::format("With --preset {}:", preset.preset);
    for (const Spelling& spelling : preset.flags) {
      const bool of_run = spelling.ours == kName || spelling.ours == kFolder;
      const std::string item =
          fmt::format(" {} = {};", spelling.theirs, of_run ? "in --output-dir" : spelling.ours);
      if (line.size() + item.size() > kColumns) {
        text += line + "\n";
        line = " ";
      }
      line += item;
    }
    line.back() = '\n';
    text += line;
  }
  return text;
}

}  // namespace lockstep::trainers
