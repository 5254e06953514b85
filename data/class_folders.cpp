#include "data/class_folders.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/first_few.h"
#include "core/words.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLayout =
    "one folder per class below train and below val: train/ants/1.jpg, val/ants/2.jpg, ...";

bool is_image(const std::string& extension) {
  constexpr std::array kImages = {".jpg", ".jpeg", ".png"};
  return std::ranges::find(kImages, extension) != kImages.end();
}

// The key of ClassFolders::left: short and printable.
std::string kind_of_left(const std::string& name, const std::string& extension) {
  constexpr size_t kMaxExtension = 8;
  const std::string lower = to_lower(name);
  if (name.starts_with('.') || lower == "thumbs.db" || lower == "desktop.ini") return kHiddenFiles;
  if (extension.empty()) return "no extension";
  const bool plain = std::ranges::all_of(
      extension.substr(1), [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; });
  return plain && extension.size() <= kMaxExtension ? extension : kOtherFiles;
}

// Keeps the number of kinds small.
void count_left(std::map<std::string, int64_t>& left, const std::string& kind, int64_t files) {
  constexpr size_t kMaxKinds = 32;
  left[left.size() < kMaxKinds || left.contains(kind) ? kind : kOtherFiles] += files;
}

[[noreturn]] void throw_unreadable(const fs::path& folder, const std::error_code& error) {
  throw DataError(fmt::format("the folder {} cannot be read", printable(folder.string())),
                  error.message(),
                  "check that it is there and that you may read it");
}

std::vector<std::string> folder_names(const fs::path& root, size_t fewest) {
  std::error_code error;
  std::vector<std::string> names;
  bool images = false;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) names.push_back(entry->path().filename().string());
    images = images || is_image(to_lower(entry->path().extension().string()));
  }
  if (error) throw_unreadable(root, error);
  std::ranges::sort(names);
  if (names.size() >= fewest) return names;
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

// Visits a class folder and the folders below it, each once, even if several links lead to it.
// Links to the split's folder or one above it are not followed, since they lead to the other
// classes. A folder that can be reached without links gets the path without links.
class FolderWalk {
 public:
  FolderWalk(const fs::path& root, const fs::path& top) {
    std::error_code error;
    for (fs::path above = fs::canonical(root, error); !error; above = above.parent_path()) {
      is_new(above);
      if (!above.has_relative_path()) break;
    }
    add(top, false);
  }

  // The next folder to look into; nothing at the end.
  std::optional<fs::path> next() {
    while (!folders_.empty() || !links_.empty()) {
      fs::path folder = take();
      if (is_new(folder)) return folder;
    }
    return std::nullopt;
  }
  void add(const fs::path& folder, bool is_link) {
    if (is_link) {
      links_.insert(folder);
    } else {
      folders_.push_back(folder);
    }
  }

 private:
  bool is_new(const fs::path& folder) {
    struct stat info{};
    if (stat(folder.c_str(), &info) != 0) return false;
    return seen_.emplace(info.st_dev, info.st_ino).second;
  }

  fs::path take() {
    if (folders_.empty()) return links_.extract(links_.begin()).value();
    fs::path folder = std::move(folders_.back());
    folders_.pop_back();
    return folder;
  }

  std::vector<fs::path> folders_;
  std::set<fs::path> links_;  // sorted, so that the order is the same on every machine
  std::set<std::pair<dev_t, ino_t>> seen_;
};

// Images in torchvision's order: by folder, then by name.
std::vector<Found> images_below(const fs::path& root,
                                const fs::path& top,
                                std::map<std::string, int64_t>& left) {
  std::vector<Found> found;
  FolderWalk walk(root, top);
  while (const std::optional<fs::path> folder = walk.next()) {
    std::error_code error;
    for (fs::directory_iterator entry(*folder, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_directory(ignored)) {
        walk.add(entry->path(), entry->is_symlink(ignored));
        continue;
      }
      const std::string name = entry->path().filename().string();
      const std::string extension = to_lower(entry->path().extension().string());
      if (!is_image(extension)) {
        count_left(left, kind_of_left(name, extension), 1);
        continue;
      }
      const auto bytes = static_cast<int64_t>(entry->file_size(ignored));
      found.push_back({*folder, name, bytes});
    }
    if (error) throw_unreadable(*folder, error);
  }
  std::ranges::sort(found, {}, &Found::key);
  return found;
}

[[noreturn]] void throw_no_images(const char* what,
                                  const fs::path& folder,
                                  const std::map<std::string, int64_t>& left) {
  const std::string there = describe_left(left);
  throw DataError(
      fmt::format("{} {} has no images", what, printable(folder.string())),
      fmt::format("files that end in .jpg, .jpeg or .png were looked for{}{}",
                  there.empty() ? "" : "; it has ",
                  there),
      "put .jpg or .png files into it, or remove the folder here and in the other split");
}

[[noreturn]] void throw_unknown_class(const fs::path& folder,
                                      const std::vector<std::string>& classes) {
  constexpr size_t kShown = 3;
  std::vector<std::string> known(classes.size());
  std::ranges::transform(classes, known.begin(), [](const std::string& name) {
    return fmt::format("'{}'", printable(name));
  });
  throw DataError(
      fmt::format("no class has the name of the folder {}", printable(folder.string())),
      fmt::format("the {} classes are {}", classes.size(), first_few(known, ", ", kShown)),
      "rename the folder to the class that it holds, or remove it");
}

}  // namespace

std::string describe_left(const std::map<std::string, int64_t>& left) {
  constexpr size_t kShown = 5;
  std::vector<std::pair<std::string, int64_t>> kinds(left.begin(), left.end());
  std::erase_if(kinds, [](const auto& kind) { return kind.first == kHiddenFiles; });
  if (kinds.empty()) return {};
  std::ranges::stable_sort(kinds, std::ranges::greater(), &std::pair<std::string, int64_t>::second);
  int64_t files = 0;
  int64_t rest = 0;
  std::vector<std::string> shown;
  for (const auto& [kind, count] : kinds) {
    files += count;
    if (shown.size() == kShown) {
      rest += count;
    } else {
      shown.push_back(fmt::format("{} {}", count, kind));
    }
  }
  if (rest > 0) shown.push_back(fmt::format("{} more", rest));
  return fmt::format("{} {} neither .jpg nor .png: {}",
                     counted(files, "file"),
                     files == 1 ? "that is" : "that are",
                     fmt::join(shown, ", "));
}

ClassFolders find_class_folders(const fs::path& root, const std::vector<std::string>& classes) {
  const std::vector<std::string> names = folder_names(root, classes.empty() ? 2 : 1);
  ClassFolders folders{.classes = classes.empty() ? names : classes, .files = {}, .left = {}};
  std::map<std::string, int32_t> labels;
  for (const std::string& name : folders.classes) {
    labels.emplace(name, static_cast<int32_t>(labels.size()));
  }
  for (const std::string& name : names) {
    const fs::path folder = root / name;
    const auto label = labels.find(name);
    if (label == labels.end()) throw_unknown_class(folder, classes);
    std::map<std::string, int64_t> left;
    const std::vector<Found> found = images_below(root, folder, left);
    if (found.empty() && classes.empty()) throw_no_images("the class folder", folder, left);
    for (const auto& [kind, count] : left) count_left(folders.left, kind, count);
    for (const Found& file : found) {
      folders.files.push_back({.path = (file.folder / file.name).lexically_relative(root).string(),
                               .label = label->second,
                               .bytes = file.bytes});
    }
  }
  if (folders.files.empty()) throw_no_images("the folder", root, folders.left);
  return folders;
}

}  // namespace lockstep::data
