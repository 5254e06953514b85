#include "data/open_dataset.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "data/cifar10.h"
#include "data/drawn_dataset.h"
#include "data/files.h"
#include "data/idx.h"
#include "data/image_folder.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLookedFor =
    "looked for MNIST/raw, FashionMNIST/raw, raw or the folder itself with *-ubyte[.gz] files, "
    "cifar-10-batches-bin or the folder itself with data_batch_1.bin, train and val (to evaluate, "
    "val alone)";

// IDX files do not say which data set they are, but the name of their folder, or of one around it,
// may. The innermost one that names a data set decides.
bool is_named_fashion(const fs::path& dir) {
  fs::path folder = fs::absolute(dir).lexically_normal();
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    const std::string name = to_lower(folder.filename().string());
    if (name.find("fashion") != std::string::npos) return true;
    if (name.find("mnist") != std::string::npos) return false;
  }
  return false;
}

[[noreturn]] void throw_unknown(const fs::path& dir) {
  throw DataError(fmt::format("no known data set in {}", dir.string()),
                  kLookedFor,
                  "say which data set it is, or leave the folder out to train on built-in images",
                  Remedy::kDataset);
}

struct Found {
  const char* dataset;
  const char* folder;
  int64_t channels;
};

// The data sets that a folder in `dir` identifies by its name.
std::vector<Found> named_sets(const fs::path& dir) {
  std::vector<Found> found;
  if (is_folder(dir / "MNIST/raw") && find_idx_folder(dir, "mnist") == dir / "MNIST/raw") {
    found.push_back({"mnist", "MNIST/raw", 1});
  }
  if (is_folder(dir / "FashionMNIST/raw") &&
      find_idx_folder(dir, "fashion-mnist") == dir / "FashionMNIST/raw") {
    found.push_back({"fashion-mnist", "FashionMNIST/raw", 1});
  }
  if (is_folder(dir / "cifar-10-batches-bin")) {
    found.push_back({"cifar10", "cifar-10-batches-bin", 3});
  }
  if (is_folder(dir / "val")) found.push_back({"imagefolder", "val", 3});
  return found;
}

}  // namespace

std::string detect_dataset(const fs::path& dir, int64_t channels) {
  if (!is_folder(dir)) {
    throw DataError(fmt::format("no data set in {}", dir.string()),
                    "there is no such folder",
                    "name another folder, or none to train on built-in images",
                    Remedy::kDataset);
  }
  std::vector<Found> sets = named_sets(dir);
  const auto wanted = [&](const Found& set) { return set.channels == channels; };
  if (std::ranges::any_of(sets, wanted)) std::erase_if(sets, std::not_fn(wanted));
  if (sets.size() > 1) {
    throw DataError(fmt::format("more than one data set in {}", dir.string()),
                    fmt::format("both {} and {} are there", sets[0].folder, sets[1].folder),
                    fmt::format("choose one: {} or {}", sets[0].dataset, sets[1].dataset),
                    Remedy::kDataset);
  }
  if (!sets.empty()) return sets.front().dataset;
  if (!find_idx_folder(dir, "mnist").empty())
    return is_named_fashion(dir) ? "fashion-mnist" : "mnist";
  // If there are only pickles, open_cifar10() throws an error that says what to do.
  if (!find_cifar10_folder(dir).empty() || has_cifar10_pickles(dir)) return "cifar10";
  throw_unknown(dir);
}

DatasetPair open_dataset(const std::string& name,
                         const fs::path& dir,
                         const PhotoOptions& photos,
                         Splits splits) {
  if (name == "digits") return open_digits(splits);
  if (name == "shapes") return open_shapes(splits);
  if (name == "auto") return open_dataset(detect_dataset(dir), dir, photos, splits);
  if (name == "mnist" || name == "fashion-mnist") return open_idx_pair(dir, name, splits);
  if (name == "cifar10") return open_cifar10(dir, splits);
  if (name == "imagefolder") return open_image_folders(dir, photos, splits);
  throw UsageError(fmt::format("the data set {} is not known", name),
                   {},
                   "use digits, shapes, mnist, fashion-mnist, cifar10, imagefolder or auto");
}

}  // namespace lockstep::data
