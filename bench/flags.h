// Command lines of the benchmarks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>

#include "core/error.h"
#include "trainers/config/exchange_config.h"

namespace CLI {
class App;
}

namespace lockstep::bench {

// Flags and what reads their values; of several values of a flag the last counts, as with getopt.
class Flags {
 public:
  using Read = std::function<void(const std::string& text)>;

  // `flags_taken`: whose flags these are, as the error about an unknown one says.
  Flags(std::string program, const std::string& purpose, std::string flags_taken);
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;
  ~Flags();

  // `names`: "-n,--iters"; `initial`: as --help shows it.
  void add(const std::string& names,
           const std::string& metavar,
           const std::string& initial,
           const std::string& help,
           const Read& read);
  void add_hidden(const std::string& names, const Read& read);
  void add_switch(const std::string& names, const std::string& help, bool& value);

  // Reads all values. Returns what is to be printed instead of measuring; usually nothing.
  // `arguments`: without the program's name. Errors: UsageError.
  std::string parse(const std::vector<std::string>& arguments);

 private:
  UsageError unknown(const std::string& argument) const;

  const std::string program_;
  const std::string flags_taken_;
  const std::unique_ptr<CLI::App> app_;
};

// --transport and --stall-abort.
void add_connection(Flags& flags, comm::ConnectOptions& options);
// For set_remedy_text(): what of it those two flags choose.
std::string_view connection_advice(Remedy remedy);

UsageError bad_value(std::string_view flag, std::string_view text, std::string_view takes);

// Errors: UsageError, here and below.
int64_t whole_number(std::string_view flag, const std::string& text, int64_t min, int64_t max);

template <class T>
T choice(std::string_view flag,
         std::string_view text,
         std::span<const trainers::Named<T>> choices) {
  std::vector<std::string_view> names;
  for (const auto& [value, name] : choices) {
    if (name == text) return value;
    names.push_back(name);
  }
  throw bad_value(flag, text, fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace lockstep::bench
