// The table's rows, a file a group (flags_<group>.cpp), and what rows are written with.
// One row a flag reads better than one field a line: those files leave it unformatted.
#pragma once

#include <span>
#include <string_view>

#include "trainers/options/option_table.h"

namespace lockstep::trainers {

constexpr PerProgram both(std::string_view value) {
  return {.convnet = value, .resnet = value};
}

inline constexpr double kMillion = 1e6;
inline constexpr FlagRange kFrom0{.min = 0, .max = 1e9};
inline constexpr FlagRange kFrom1{.min = 1, .max = 1e9};
inline constexpr FlagRange kUnit{.min = 0, .max = 1};

// In help order.
std::span<const Flag> data_flags();
std::span<const Flag> model_flags();
std::span<const Flag> optimizer_flags();
std::span<const Flag> precision_flags();
std::span<const Flag> distributed_flags();
std::span<const Flag> output_flags();

}  // namespace lockstep::trainers
