// An open folder. Files written by its descriptor stay in it, wherever its path leads meanwhile.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/unique_fd.h"

namespace lockstep {

class Folder {
 public:
  // Errors: EnvironmentError with the system's reason, as of the functions below.
  explicit Folder(std::filesystem::path path);
  // `fd` is open, of the folder at `path`.
  Folder(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  // Another descriptor of it, for another owner.
  Folder duplicate() const;
  // The folder `name` in this one, made where there is none.
  Folder inner(const std::string& name) const;

  const std::filesystem::path& path() const { return path_; }  // that it was opened by
  int fd() const { return fd_.get(); }

  bool is_same(const Folder& other) const;
  // True when no file can be made in it any more.
  bool is_removed() const;
  // The path that leads to it now: not path() when it was moved.
  std::filesystem::path present_path() const;

  std::vector<std::string> names() const;
  // False where there is still such a file: it cannot be removed.
  bool remove(const std::string& name) const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace lockstep
