// The error for a file that torch.save did not write, or whose content is not taken.
#pragma once

#include <string>

namespace lockstep::trainers {

// For files that another form of torch.save would make readable.
inline constexpr const char* kSaveStateDict =
    "torch.save(model.state_dict(), FILE) in the program that has the model";
// For damaged ones.
inline constexpr const char* kAnotherCopy = "another copy of the file, or save it again in PyTorch";

// Throws CheckpointError.
[[noreturn]] void refuse_torch_file(const std::string& file,
                                    const std::string& why,
                                    const std::string& hint);

}  // namespace lockstep::trainers
