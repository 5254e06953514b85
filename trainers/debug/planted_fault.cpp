#include "trainers/debug/planted_fault.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <signal.h>

#include "core/error.h"
#include "core/words.h"
#include "trainers/report/print.h"

namespace lockstep::trainers {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// "rank=1,step=30", word by word.
class FaultWords {
 public:
  explicit FaultWords(std::string_view text) : words_(split_words(text, ',')) {}

  bool at_end() const { return next_ == words_.size(); }
  // Returns the value of the next word if it has this key.
  std::optional<std::string_view> value(std::string_view key) {
    if (at_end()) return std::nullopt;
    const std::string_view word = words_[next_];
    if (!word.starts_with(key) || !word.substr(key.size()).starts_with('=')) return std::nullopt;
    ++next_;
    return word.substr(key.size() + 1);
  }
  // Parses the value of the next word if it has this key: at most `digits` digits. Returns false
  // for other text, and `optional` if the key is absent.
  template <class T>
  bool number(std::string_view key, size_t digits, T& number, bool optional = false) {
    const std::optional<std::string_view> text = value(key);
    if (!text) return optional;
    const std::optional<int64_t> found = parse_int(*text);
    if (!found || *found < 0 || text->size() > digits) return false;
    number = static_cast<T>(*found);
    return true;
  }

 private:
  const std::vector<std::string_view> words_;
  size_t next_ = 0;
};

bool read_layer(FaultWords& words, std::string& layer) {
  const std::optional<std::string_view> name = words.value("layer");
  layer = name.value_or("");
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  return !name || (!name->empty() && std::ranges::all_of(*name, is_part));
}

bool read_value(FaultWords& words, double& value) {
  const std::optional<std::string_view> text = words.value("value");
  const std::optional<double> number = text ? parse_float(*text) : value;
  value = number.value_or(0);
  return number.has_value();
}

bool read_fault(std::string_view text, Fault& fault) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.ends_with(',')) return false;
  fault.kind = text.substr(0, colon);
  FaultWords words(text.substr(colon + 1));
  if (fault.slows_photos() || fault.kind == "slownet") {
    fault.rank = Fault::kAllRanks;
    const bool is_read = words.number("ms", 5, fault.number);
    const bool may_name_rank = fault.slows_photos();
    return is_read && (!may_name_rank || words.number("rank", 4, fault.rank, true)) &&
           words.at_end();
  }
  if (!fault.breaks_layer() && !fault.breaks_exchange() &&
      !is_one_of(fault.kind, {"flipbit", "kill", "stop", "nan", "slow"})) {
    return false;
  }
  if (!words.number("rank", 4, fault.rank)) return false;
  if (!words.number(fault.kind == "slow" ? "ms" : "step", 9, fault.number)) return false;
  if (!fault.breaks_layer()) return words.at_end();
  if (fault.kind == "loop") return read_layer(words, fault.layer) && words.at_end();
  return words.number("count", 9, fault.count, true) && read_layer(words, fault.layer) &&
         read_value(words, fault.value) && words.at_end();
}

}  // namespace

std::optional<Fault> parse_fault(const std::string& text) {
  if (text.empty()) return std::nullopt;
  Fault fault;
  if (read_fault(text, fault)) return fault;
  throw UsageError(fmt::format("LOCKSTEP_FAULT is '{}'", printable(text)),
                   "it takes flipbit, kill, stop, nan, inf, loop, skip or lost, a rank and a step, "
                   "or slow, a rank and milliseconds, or slowdisk, slowdecode or slownet and "
                   "milliseconds",
                   "LOCKSTEP_FAULT=flipbit:rank=1,step=30, or unset it");
}

void inject(const std::optional<Fault>& fault, int rank, int64_t step, nn::Module& model) {
  if (!fault || !is_one_of(fault->kind, {"flipbit", "kill", "stop", "nan"})) return;
  if (fault->rank != rank || fault->number != step) return;
  const std::string what = fmt::format("{} on rank {} after step {}", fault->kind, rank, step);
  print(stderr, fmt::format("LOCKSTEP_FAULT: {}\n", what));
  if (fault->kind == "kill") raise(SIGKILL);
  if (fault->kind == "stop") raise(SIGSTOP);
  damage_weights(*fault, model);
}

}  // namespace lockstep::trainers
