// Finds image files in one folder per class: the layout of torchvision's ImageFolder.
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
  std::vector<std::string> classes;  // names; a label is an index into it
  std::vector<ImageFile> files;      // by class folder, folder and name
  // The number of files that were left out, by extension in lower case. Hidden files and those that
  // Windows leaves in folders count as kHiddenFiles, those with odd extensions as kOtherFiles.
  std::map<std::string, int64_t> left;
};

inline constexpr const char* kHiddenFiles = "hidden";
inline constexpr const char* kOtherFiles = "other";

// Returns what was left out for a note, most frequent first and without hidden files: "4 files that
// are neither .jpg nor .png: 3 .webp, 1 .bmp". Empty where there is nothing.
std::string describe_left(const std::map<std::string, int64_t>& left);

// Looks for .jpg, .jpeg and .png files (in any case) in all folders below each class folder.
// Follows symbolic links, but enters each folder once. Without `classes`, each folder is a class,
// in byte order. With them, a folder belongs to the class of its name, and a class may have no
// images. Errors: DataError, which says what to do, when `root` is no folder, has no images or a
// folder that cannot be read; without `classes`, when it has fewer than two folders or one without
// images; with them, when a folder has another name.
ClassFolders find_class_folders(const std::filesystem::path& root,
                                const std::vector<std::string>& classes = {});

}  // namespace lockstep::data
#pragma GCC visibility pop
