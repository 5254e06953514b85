#include "data/class_folders.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLayout =
    "one folder a class below train and below val: train/ants/1.jpg, val/ants/2.jpg, ...";

std::string lower_extension(const fs::path& file) {
  std::string extension = file.extension().string();
  std::ranges::transform(
      extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension;
}

bool is_image(const std::string& extension) {
  constexpr std::array kImages = {".jpg", ".jpeg", ".png"};
  return std::ranges::find(kImages, extension) != kImages.end();
}

[[noreturn]] void throw_unreadable(const fs::path& folder, const std::error_code& error) {
  throw DataError(fmt::format("the folder {} cannot be read", printable(folder.string())),
                  error.message(),
                  "check that it is there and that you may read it");
}

std::vector<std::string> class_names(const fs::path& root) {
  std::error_code error;
  std::vector<std::string> names;
  bool images = false;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) names.push_back(entry->path().filename().string());
    images = images || is_image(lower_extension(entry->path()));
  }
  if (error) throw_unreadable(root, error);
  std::ranges::sort(names);
  if (names.size() >= 2) return names;
  const std::string place = printable(root.string());
  if (names.empty() && images) {
    throw DataError(fmt::format("the images in {} are not sorted into classes", place),
                    "they lie in it without folders between",
                    kLayout);
  }
  throw DataError(fmt::format("{} has {} class folder{}",
                              place,
                              names.empty() ? "no" : "only one",
                              names.empty() ? "s" : ""),
                  "training tells two classes or more apart",
                  kLayout);
}

struct Found {
  fs::path folder;
  std::string name;
  int64_t bytes = 0;

  auto key() const { return std::pair(folder.string(), name); }
};

// As torchvision orders them: folder by folder, each folder's files by name.
std::vector<Found> images_below(const fs::path& folder, std::map<std::string, int64_t>& left) {
  std::error_code error;
  std::vector<Found> found;
  fs::path last = folder;  // the folder that is entered, when one cannot be
  using Options = fs::directory_options;
  for (fs::recursive_directory_iterator entry(folder, Options::follow_directory_symlink, error),
       end;
       !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      last = entry->path();
      continue;
    }
    const std::string extension = lower_extension(entry->path());
    if (!is_image(extension)) {
      ++left[extension.empty() ? "no extension" : extension];
      continue;
    }
    const auto bytes = static_cast<int64_t>(entry->file_size(ignored));
    found.push_back({entry->path().parent_path(), entry->path().filename().string(), bytes});
  }
  if (error) throw_unreadable(last, error);
  std::ranges::sort(found, {}, &Found::key);
  return found;
}

}  // namespace

ClassFolders find_class_folders(const fs::path& root) {
  ClassFolders folders{.classes = class_names(root), .files = {}, .left = {}};
  for (size_t label = 0; label < folders.classes.size(); ++label) {
    const fs::path folder = root / folders.classes[label];
    const std::vector<Found> found = images_below(folder, folders.left);
    if (found.empty()) {
      throw DataError(fmt::format("the class folder {} has no images", printable(folder.string())),
                      "files that end in .jpg, .jpeg or .png were looked for",
                      "put images into it, or remove the folder here and in the other split");
    }
    for (const Found& file : found) {
      folders.files.push_back({.path = (file.folder / file.name).lexically_relative(root).string(),
                               .label = static_cast<int32_t>(label),
                               .bytes = file.bytes});
    }
  }
  return folders;
}

}  // namespace lockstep::data
