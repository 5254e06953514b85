// Finds NVIDIA's libraries in Python packages, where the dynamic loader does not look: pip puts
// libcudnn.so.9 of nvidia-cudnn-cu13 into site-packages/nvidia/cudnn/lib.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cuda {

// Folders that may have a Python installation in lib/python3*: VIRTUAL_ENV, CONDA_PREFIX, the
// user's (PYTHONUSERBASE, else ~/.local), /usr/local and /usr, in this order.
std::vector<std::filesystem::path> python_prefixes();

// The files of that name in the packages below these prefixes, in the order of the prefixes and
// then by name.
std::vector<std::string> find_in_packages(std::span<const std::filesystem::path> prefixes,
                                          std::string_view soname);

// Opens dlopen(soname), or else the first of find_in_packages() that loads. Null when none does;
// dlerror() then gives the reason.
void* open_library(const char* soname);

}  // namespace lockstep::cuda
