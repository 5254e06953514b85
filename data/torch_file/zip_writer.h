// Writes a zip file of plain members.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

struct ZipPart {
  std::string name;
  std::span<const std::byte> content;  // borrowed
};

// Contents begin at multiples of 64 bytes, as in files of torch.save, so that they can be
// memory-mapped. The same parts give the same bytes. Atomic. Errors: EnvironmentError, also for
// more than 4 GiB.
void write_zip(const std::filesystem::path& path, const std::vector<ZipPart>& parts);

}  // namespace lockstep::data
