#include "data/idx.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "core/digest.h"
#include "core/error.h"
#include "data/find_path.h"
#include "data/idx_file.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kFiles = {"train-images-idx3-ubyte",
                                               "train-labels-idx1-ubyte",
                                               "t10k-images-idx3-ubyte",
                                               "t10k-labels-idx1-ubyte"};

// folder/file or folder/file.gz; an empty path when neither exists.
fs::path find_file(const fs::path& folder, const char* file) {
  for (const char* ending : {"", ".gz"}) {
    fs::path path = folder / (std::string(file) + ending);
    if (is_file(path)) return path;
  }
  return {};
}

std::array<fs::path, 3> folders_of(const fs::path& dir, const std::string& name) {
  return {dir / (name == "mnist" ? "MNIST" : "FashionMNIST") / "raw", dir / "raw", dir};
}

[[noreturn]] void throw_nothing_found(const fs::path& dir, const std::string& name) {
  std::string looked;
  for (const fs::path& folder : folders_of(dir, name)) {
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", folder.string());
  }
  throw DataError(fmt::format("no {} in {}", name, dir.string()),
                  fmt::format("looked for {}, {}, {}, {} (or .gz) in {}",
                              kFiles[0],
                              kFiles[1],
                              kFiles[2],
                              kFiles[3],
                              looked),
                  "name the folder that holds the files",
                  Remedy::kDigits);
}

std::array<fs::path, 4> find_files(const fs::path& dir, const std::string& name) {
  const fs::path folder = find_idx_folder(dir, name);
  if (folder.empty()) throw_nothing_found(dir, name);
  std::array<fs::path, 4> paths;
  std::string missing;
  for (size_t i = 0; i < kFiles.size(); ++i) {
    paths[i] = find_file(folder, kFiles[i]);
    if (!paths[i].empty()) continue;
    missing += fmt::format("{}{}[.gz]", missing.empty() ? "" : ", ", kFiles[i]);
  }
  if (!missing.empty()) {
    throw DataError(fmt::format("{} in {} is not complete", name, folder.string()),
                    fmt::format("missing: {}", missing),
                    "fetch the missing files",
                    Remedy::kDigits);
  }
  return paths;
}

}  // namespace

IdxDataset::IdxDataset(std::string name, const fs::path& images, const fs::path& labels)
    : name_(std::move(name)) {
  IdxFile image_file = read_idx(images, 3);
  IdxFile label_file = read_idx(labels, 1);
  if (image_file.extents[0] != label_file.extents[0]) {
    throw DataError(
        fmt::format("{} and {} do not belong together", images.string(), labels.string()),
        fmt::format(
            "they hold {} images and {} labels", image_file.extents[0], label_file.extents[0]));
  }
  const auto bad = std::ranges::find_if(label_file.bytes, [](uint8_t label) { return label > 9; });
  if (bad != label_file.bytes.end()) {
    throw DataError(
        fmt::format("{} holds a label out of range", labels.string()),
        fmt::format("label {} is {}, expected 0 to 9", bad - label_file.bytes.begin(), *bad));
  }
  shape_ = {1, image_file.extents[1], image_file.extents[2]};
  pixels_ = std::move(image_file.bytes);
  labels_ = std::move(label_file.bytes);
}

void IdxDataset::read(int64_t i, std::span<uint8_t> pixels) const {
  const auto bytes = static_cast<size_t>(shape_.numel());
  std::copy_n(pixels_.data() + static_cast<size_t>(i) * bytes, bytes, pixels.data());
}

std::string IdxDataset::digest() const {
  Digest digest;
  digest.update(static_cast<uint64_t>(size()));
  digest.update(static_cast<uint64_t>(shape_.height));
  digest.update(static_cast<uint64_t>(shape_.width));
  digest.update(std::as_bytes(std::span(labels_)));
  digest.update(std::as_bytes(std::span(pixels_)));
  return to_hex(digest.value());
}

fs::path find_idx_folder(const fs::path& dir, const std::string& name) {
  for (const fs::path& folder : folders_of(dir, name)) {
    for (const char* file : kFiles) {
      if (!find_file(folder, file).empty()) return folder;
    }
  }
  return {};
}

DatasetPair open_idx_pair(const fs::path& dir, const std::string& name) {
  const std::array<fs::path, 4> files = find_files(dir, name);
  DatasetPair pair{.train = std::make_shared<IdxDataset>(name + "/train", files[0], files[1]),
                   .test = std::make_shared<IdxDataset>(name + "/test", files[2], files[3])};
  const ImageShape train = pair.train->image_shape();
  const ImageShape test = pair.test->image_shape();
  if (train != test) {
    throw DataError(
        fmt::format("{} and {} do not belong together", files[0].string(), files[2].string()),
        fmt::format("their images are {} x {} and {} x {}",
                    train.height,
                    train.width,
                    test.height,
                    test.width));
  }
  return pair;
}

}  // namespace lockstep::data
