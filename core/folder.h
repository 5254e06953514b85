// An open folder. Files written through its descriptor go into it, even when it was moved or its
// path now leads elsewhere.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/unique_fd.h"

namespace lockstep {

class Folder {
 public:
  // Errors: EnvironmentError with the system's reason, here and below.
  explicit Folder(std::filesystem::path path);
  // `fd` is an open descriptor of the folder at `path`.
  Folder(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  // Returns another descriptor of the same folder.
  Folder duplicate() const;
  // Opens the folder `name` in this one, and creates it if it is missing.
  Folder inner(const std::string& name) const;

  const std::filesystem::path& path() const { return path_; }  // as it was opened
  int fd() const { return fd_.get(); }

  bool is_same(const Folder& other) const;
  // True when the folder was deleted, so that no file can be created in it.
  bool is_removed() const;
  // The present path of the folder, which differs from path() when it was moved.
  std::filesystem::path present_path() const;

  std::vector<std::string> names() const;
  // Returns false when the file exists and cannot be removed.
  bool remove(const std::string& name) const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace lockstep
