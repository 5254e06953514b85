// MNIST's file format, IDX, plain or gzipped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Gray images with labels 0..9, held in memory.
class IdxDataset : public Dataset {
 public:
  // Reads one images file (magic 0x00000803) and one labels file (0x00000801). Memory grows with
  // the files' real content, whatever their headers claim; a claim that a file of that size cannot
  // hold is rejected before. Errors: EnvironmentError when the data exceed memory.
  // Errors: DataError naming file, numbers found and numbers expected: unreadable, wrong magic, no
  // images, dimensions beyond 2^31 x 16384 x 16384, shorter or longer than the header says, damaged
  // gzip data, counts that differ, a label above 9.
  IdxDataset(std::string name,
             const std::filesystem::path& images,
             const std::filesystem::path& labels);

  std::string name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t classes() const override { return 10; }
  ImageShape image_shape() const override { return shape_; }
  int32_t label(int64_t i) const override { return labels_[static_cast<size_t>(i)]; }
  void read(int64_t i, std::span<uint8_t> pixels) const override;
  std::string digest() const override;

 private:
  std::string name_;
  ImageShape shape_;
  std::vector<uint8_t> labels_;
  std::vector<uint8_t> pixels_;
};

// Returns the first of dir/FOLDER/raw, dir/raw and dir that holds a file of the set, where FOLDER
// is torchvision's MNIST or FashionMNIST; an empty path when none does.
// Requires: name is "mnist" or "fashion-mnist", here and below.
std::filesystem::path find_idx_folder(const std::filesystem::path& dir, const std::string& name);

// Opens {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] in find_idx_folder(dir, name).
// Errors: DataError that lists missing files, or for train and test images of different sizes;
// those of IdxDataset.
DatasetPair open_idx_pair(const std::filesystem::path& dir,
                          const std::string& name,
                          Splits splits = Splits::kBoth);

}  // namespace lockstep::data
#pragma GCC visibility pop
