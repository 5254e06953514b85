// Photos in class folders, decoded when they are read.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/class_folders.h"
#include "data/dataset.h"
#include "data/photo_cache.h"
#include "data/photo_options.h"
#include "data/resample.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Options of one split.
struct SplitOptions {
  int64_t crop = 224;  // side of the crop; in training, of the largest
  CropRamp ramp = {};  // for training
  int64_t resize = 256;
  Interpolation by = Interpolation::kBilinear;
  std::optional<Interpolation> crops_by = Interpolation::kBilinear;  // none: drawn at random
  bool shrink = false;
  std::vector<std::string> classes{};                  // find_class_folders()'s
  std::shared_ptr<std::atomic<int64_t>> cache_room{};  // remaining bytes; null: no cache
  std::chrono::milliseconds slow_disk{0};
  std::chrono::milliseconds slow_decode{0};
};

// One split. All images become squares: read() resizes the image by its short side and takes the
// center; in training a random part is resized and perhaps flipped. Source: torchvision's
// ImageFolder, Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip.
class ImageFolder : public Dataset {
 public:
  // Requires: 1 <= crop <= resize. Errors: those of find_class_folders(), require_codecs().
  ImageFolder(std::string name, std::filesystem::path root, const SplitOptions& options = {});

  std::string name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(folders_.files.size()); }
  int64_t classes() const override { return static_cast<int64_t>(folders_.classes.size()); }
  std::vector<std::string> class_names() const override { return folders_.classes; }
  std::map<std::string, int64_t> left_out() const override { return folders_.left; }
  ImageShape image_shape() const override { return square(options_.crop); }
  ImageShape training_shape(int64_t epoch) const override {
    return square(options_.ramp.side(epoch, options_.crop));
  }
  int32_t label(int64_t i) const override { return file(i).label; }
  // Errors of both: UnreadableImage naming the file, also when its size has changed.
  void read(int64_t i, std::span<uint8_t> pixels) const override;
  void read_for_training(int64_t i,
                         int64_t epoch,
                         const Augmentation& augmentation,
                         std::span<uint8_t> pixels) const override;
  std::string digest() const override;  // of file names, file sizes and options

  const ClassFolders& folders() const { return folders_; }

 private:
  const ImageFile& file(int64_t i) const { return folders_.files[static_cast<size_t>(i)]; }
  static ImageShape square(int64_t side) { return {.channels = 3, .height = side, .width = side}; }
  Resample center_of(const ImageSize& image, int64_t crop) const;
  // choose(size of the image) returns the Resample to make.
  template <class Choose>
  void read(int64_t i, const Choose& choose, bool flip, std::span<uint8_t> pixels) const;
  template <class Choose>
  bool read_cached(int64_t i, const Choose& choose, bool flip, std::span<uint8_t> pixels) const;
  template <class Choose>
  void decode_file(int64_t i, const Choose& choose, bool flip, std::span<uint8_t> pixels) const;
  FileStamp load(int64_t i, std::vector<std::byte>& bytes) const;
  int shrink_for(const Resample& what) const;
  std::string path_of(int64_t i) const { return (root_ / file(i).path).string(); }

  std::string name_;
  std::filesystem::path root_;
  const SplitOptions options_;
  ClassFolders folders_;
  std::unique_ptr<PhotoCache> cache_;
};

// Opens `dir`/train and `dir`/val. A label means the same class in both, and `val` may lack some.
// Errors: also DataError when `val` has others, or lacks a hidden folder of `train`.
DatasetPair open_image_folders(const std::filesystem::path& dir,
                               const PhotoOptions& photos = {},
                               Splits splits = Splits::kBoth);

}  // namespace lockstep::data
#pragma GCC visibility pop
