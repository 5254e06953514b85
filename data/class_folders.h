// A folder for each class, image files in them: torchvision's ImageFolder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep::data {

struct ImageFile {
  std::string path;  // below the root: "ants/1.jpg"
  int32_t label = 0;
  int64_t bytes = 0;
};

struct ClassFolders {
  std::vector<std::string> classes;     // names in order of their bytes; labels are places in it
  std::vector<ImageFile> files;         // by class, folder and name
  std::map<std::string, int64_t> left;  // files of other kinds, by their extension
};

// Looks for .jpg, .jpeg and .png (in any case) in all folders below each class, through symbolic
// links, in each folder once. Errors: DataError, naming what is wrong and what to do: `root` is no
// folder, has no class or only one, a class without images, a folder that cannot be read.
ClassFolders find_class_folders(const std::filesystem::path& root);

}  // namespace lockstep::data
#pragma GCC visibility pop
