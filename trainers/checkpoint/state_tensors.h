// A model's or an optimizer's state as a file holds it: PyTorch's names, shapes and order.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "nn/module.h"

namespace lockstep::trainers {

// Row-major whatever their rank, by name.
using FileTensors = std::map<std::string, Tensor>;

// Copies.
FileTensors file_tensors(std::span<const nn::StateEntry> entries);

// XXH3 over a model's parameters and buffers in name order: equal exactly when all bits are.
uint64_t state_digest(const nn::Module& model);

// A line for each entry that `tensors` lacks or has in another shape or type, in the order of
// entries, then one for each tensor that is no entry's. Empty: they fit.
std::vector<std::string> mismatches(std::span<const nn::StateEntry> entries,
                                    const FileTensors& tensors);
// The first few, as the reason of an error.
std::string first_of(const std::vector<std::string>& mismatches);

// Copies each tensor over the entry of its name. Requires: shapes and types that fit; entries
// without a tensor are left alone.
void copy_into(std::span<const nn::StateEntry> entries, const FileTensors& tensors);

}  // namespace lockstep::trainers
