// Throws the error for a file that torch.save did not write, or whose content is not accepted.
#pragma once

#include <string>

namespace lockstep::data {

// A hint for files that would be readable in another form of torch.save.
inline constexpr const char* kSaveStateDict =
    "torch.save(model.state_dict(), FILE) in the program that has the model";
// A hint for damaged files.
inline constexpr const char* kAnotherCopy = "another copy of the file, or save it again in PyTorch";

// Throws CheckpointError.
[[noreturn]] void refuse_torch_file(const std::string& file,
                                    const std::string& why,
                                    const std::string& hint);

}  // namespace lockstep::data
