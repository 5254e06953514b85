// The state of a model or an optimizer as a file holds it, with PyTorch's names, shapes and order;
// and weights of another training, for --pretrained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/safetensors_header.h"
#include "core/tensor.h"
#include "nn/module.h"

namespace lockstep {

// Tensors by name, row-major whatever their rank.
using FileTensors = std::map<std::string, Tensor>;

// Returns copies of the entries' tensors.
FileTensors file_tensors(std::span<const nn::StateEntry> entries);

// XXH3 over a model's parameters and buffers in name order: equal exactly when all bits are.
uint64_t state_digest(const nn::Module& model);

// Returns a line for each entry that `tensors` lacks or has in another shape or type, in the order
// of entries, then a line for each tensor that belongs to no entry. Empty: they fit.
std::vector<std::string> mismatches(std::span<const nn::StateEntry> entries,
                                    const FileTensors& tensors);
// Joins the first few, as the reason of an error.
std::string first_of(const std::vector<std::string>& mismatches);

// Copies each tensor over the entry of its name. Requires: shapes and types that fit; entries
// without a tensor are left alone.
void copy_into(std::span<const nn::StateEntry> entries, const FileTensors& tensors);

// Copies each tensor over the entry of its name. Errors: CheckpointError(problem, ..., hint) with
// the first mismatches as its reason.
void load_state(std::span<const nn::StateEntry> entries,
                const FileTensors& tensors,
                const std::string& problem,
                const std::string& hint);

enum class Classifier {
  kMustFit,
  kMayStartFresh,  // a last layer of another class count keeps its initial weights
};

struct LoadedWeights {
  std::optional<std::string> fresh;  // the classifier, where it keeps its initial weights
  std::string prefix;                // what was left out before the file's names; empty: nothing
};

// Overwrites the model's state with the file's tensors by PyTorch's names. One prefix before all of
// them is left out, whatever it is: the one that comes before most of the model's names.
// num_batches_tracked may be absent or of any type, and 16-bit values may replace 32-bit ones. The
// classifier may start fresh, as with timm's --num-classes.
// Errors: CheckpointError naming the first tensors that are missing, have another shape or type, or
// are not the model's, or two prefixes that fit.
LoadedWeights load_pretrained(const std::filesystem::path& file,
                              FileTensors tensors,
                              nn::Module& model,
                              Classifier classifier);

// Checks by the file's header whether load_pretrained() will accept the file. Errors: those of
// load_pretrained().
void check_pretrained(const std::filesystem::path& file,
                      const SafetensorsHeader& header,
                      nn::Module& model,
                      Classifier classifier);

// Drops "module." and "_orig_mod." from the names, where all of them begin so: what PyTorch's
// wrappers of a network put there. For files whose network is not known.
FileTensors without_wrappers(FileTensors tensors);

}  // namespace lockstep
