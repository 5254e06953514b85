#include "bench/flags.h"

#include <chrono>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "core/words.h"

namespace lockstep::bench {

std::string long_name(const std::string& names) {
  const size_t begin = names.find("--");
  return names.substr(begin, names.find(',', begin) - begin);
}

Flags::Flags(std::string program, const std::string& purpose, std::string flags_taken)
    : program_(std::move(program)),
      flags_taken_(std::move(flags_taken)),
      app_(std::make_unique<CLI::App>(purpose)) {
  app_->name(program_);
  app_->set_help_flag("-h,--help", "this text");
  app_->allow_extras();
}

Flags::~Flags() = default;

void Flags::add(const std::string& names,
                const std::string& metavar,
                const std::string& initial,
                const std::string& help,
                const Read& read) {
  app_->add_option_function<std::string>(names, read, help)
      ->take_last()
      ->type_name(metavar)
      ->default_str(initial);
}

void Flags::add_hidden(const std::string& names, const Read& read) {
  app_->add_option_function<std::string>(names, read)->take_last()->group("");
}

void Flags::add_switch(const std::string& names, const std::string& help, bool& value) {
  app_->add_flag(names, value, help);
}

std::string Flags::parse(const std::vector<std::string>& arguments) {
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return app_->help();
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what(),
                     "a flag without its value, or given in another way",
                     fmt::format("{} --help", program_));
  }
  if (!app_->remaining().empty()) throw unknown(app_->remaining().front());
  return {};
}

UsageError Flags::unknown(const std::string& argument) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view nearest = nearest_word(argument, known);
  return UsageError(fmt::format("unknown argument: {}", argument),
                    fmt::format("{} takes {}", program_, flags_taken_),
                    nearest.empty() ? program_ + " --help" : std::string(nearest));
}

void add_connection(Flags& flags, comm::ConnectOptions& options) {
  flags.add_choice("--transport",
                   "NAME",
                   "auto, shm (one host), mpi or tcp",
                   kTransportNames,
                   options.transport);
  flags.add("--stall-abort",
            "SECONDS",
            "60",
            "give up when a rank is missing for so long",
            [&](const std::string& text) {
              options.stall_abort =
                  std::chrono::seconds(whole_number("--stall-abort", text, 1, 86400));
            });
}

std::string_view connection_advice(Remedy remedy) {
  if (remedy == Remedy::kMpi) return "--transport auto chooses by itself";
  if (remedy == Remedy::kLongerWait) return "--stall-abort SECONDS waits longer";
  return {};
}

UsageError bad_value(std::string_view flag, std::string_view text, std::string_view takes) {
  return UsageError(fmt::format("bad value: {} {}", flag, text),
                    fmt::format("{} takes {}", flag, takes),
                    "--help shows the defaults");
}

int64_t whole_number(std::string_view flag, const std::string& text, int64_t min, int64_t max) {
  const auto value = parse_int(text);
  if (value && min <= *value && *value <= max) return *value;
  throw bad_value(flag, text, fmt::format("a whole number from {} to {}", min, max));
}

}  // namespace lockstep::bench
