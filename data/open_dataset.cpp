#include "data/open_dataset.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "data/digits.h"
#include "data/idx.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLookedFor =
    "looked for MNIST/raw, FashionMNIST/raw, raw or the folder itself with *-ubyte[.gz] files, "
    "cifar-10-batches-bin, train and val";

bool has_folder(const fs::path& dir, const char* folder) {
  std::error_code ignored;
  return fs::is_directory(dir / folder, ignored);
}

// IDX files do not say which set they are; a folder's name may.
bool named_fashion(const fs::path& dir) {
  std::string path = fs::absolute(dir).string();
  std::ranges::transform(path, path.begin(), [](unsigned char c) { return std::tolower(c); });
  return path.find("fashion") != std::string::npos;
}

[[noreturn]] void throw_unknown(const fs::path& dir) {
  const char* hint = "name it with --dataset, or train on the built-in --dataset digits";
  const bool cifar10 =
      has_folder(dir, "cifar-10-batches-bin") || has_folder(dir, "cifar-10-batches-py");
  if (cifar10 || (has_folder(dir, "train") && has_folder(dir, "val"))) {
    throw DataError(fmt::format("the data set in {} cannot be read yet", dir.string()),
                    fmt::format("it looks like {}, which is not supported yet",
                                cifar10 ? "cifar10" : "imagefolder"),
                    "train on the built-in --dataset digits");
  }
  throw DataError(fmt::format("no known data set in {}", dir.string()), kLookedFor, hint);
}

}  // namespace

std::string detect_dataset(const fs::path& dir) {
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored)) {
    throw DataError(fmt::format("no data set in {}", dir.string()),
                    "there is no such folder",
                    "point --data to a folder, or train on the built-in --dataset digits");
  }
  const bool mnist =
      has_folder(dir, "MNIST/raw") && find_idx_folder(dir, "mnist") == dir / "MNIST/raw";
  const bool fashion = has_folder(dir, "FashionMNIST/raw") &&
                       find_idx_folder(dir, "fashion-mnist") == dir / "FashionMNIST/raw";
  if (mnist && fashion) {
    throw DataError(fmt::format("two data sets in {}", dir.string()),
                    "both MNIST/raw and FashionMNIST/raw are there",
                    "choose one: --dataset mnist or --dataset fashion-mnist");
  }
  if (mnist) return "mnist";
  if (fashion) return "fashion-mnist";
  if (find_idx_folder(dir, "mnist").empty()) throw_unknown(dir);
  return named_fashion(dir) ? "fashion-mnist" : "mnist";
}

DatasetPair open_dataset(const std::string& name, const fs::path& dir) {
  if (name == "digits") return open_digits();
  if (name == "auto") return open_dataset(detect_dataset(dir), dir);
  if (name == "mnist" || name == "fashion-mnist") return open_idx_pair(dir, name);
  const bool planned = name == "cifar10" || name == "imagefolder" || name == "shapes";
  throw UsageError(fmt::format("--dataset {} is not {}", name, planned ? "built yet" : "known"),
                   {},
                   "use digits, mnist, fashion-mnist or auto");
}

}  // namespace lockstep::data
