// Photos in class folders, decoded when they are wanted.
#pragma once

#include <filesystem>
#include <string>

#include "data/class_folders.h"
#include "data/dataset.h"

namespace lockstep::data {

// One split. Images are 224x224: read() gives the centre of the image resized to 256 on its short
// side; for training a random part is resized, and flipped. Source: torchvision's ImageFolder,
// Resize(256), CenterCrop(224), RandomResizedCrop(224), RandomHorizontalFlip.
class ImageFolder : public Dataset {
 public:
  // Errors: those of find_class_folders().
  ImageFolder(std::string name, std::filesystem::path root);

  std::string name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(folders_.files.size()); }
  int64_t classes() const override { return static_cast<int64_t>(folders_.classes.size()); }
  ImageShape image_shape() const override;
  int32_t label(int64_t i) const override { return file(i).label; }
  // Both: Errors: UnreadableImage naming the file.
  void read(int64_t i, std::span<uint8_t> pixels) const override;
  void read_for_training(int64_t i,
                         int64_t epoch,
                         const Augmentation& augmentation,
                         std::span<uint8_t> pixels) const override;
  std::string digest() const override;  // of names and sizes

  const ClassFolders& folders() const { return folders_; }

 private:
  const ImageFile& file(int64_t i) const { return folders_.files[static_cast<size_t>(i)]; }
  // choose(size of the image) returns the Resample that is wanted.
  template <class Choose>
  void read(int64_t i, const Choose& choose, bool flip, std::span<uint8_t> pixels) const;

  std::string name_;
  std::filesystem::path root_;
  ClassFolders folders_;
};

// `dir`/train and `dir`/val. Errors: also DataError for classes that differ.
DatasetPair open_image_folders(const std::filesystem::path& dir);

}  // namespace lockstep::data
