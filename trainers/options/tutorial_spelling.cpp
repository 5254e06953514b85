#include "trainers/options/tutorial_spelling.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "core/words.h"

namespace lockstep::trainers {
namespace {

struct Spelling {
  std::string_view theirs;  // all of a flag's, in long ones - for _: "-s --seed-num"
  std::string_view ours;
};

// Parts of --output-dir: FOLDER/NAME.
constexpr std::string_view kName = "NAME";
constexpr std::string_view kFolder = "FOLDER";

constexpr Spelling kOfDemos[] = {{"-e", "--epochs"}};
// A batch of that script's training is one of its tests too.
constexpr Spelling kOfTricks[] = {{"-n -en --exp-name", kName},
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
    {"demo-baseline", kOfDemos}, {"demo-ddp", kOfDemos}, {"ddp-tricks", kOfTricks}};

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
