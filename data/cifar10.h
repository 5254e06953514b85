// CIFAR-10 in its binary form.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Color images of 32 x 32 with labels 0..9, from files of 10,000 records each: a label, then 1,024
// bytes each of red, green and blue. Labels are held in memory, images are read from the open files
// when they are needed: all ranks of a host share the system's cache of them, and a file that is
// cut short meanwhile is an error, where a memory map would end the process.
class Cifar10 : public Dataset {
 public:
  static constexpr int64_t kFileBytes = 30730000;

  // Reads every file once. Errors: DataError naming file, numbers found and numbers expected:
  // unreadable, shorter or longer than kFileBytes, a label above 9. Requires: at least one file.
  Cifar10(std::string name, const std::vector<std::filesystem::path>& files);
  ~Cifar10() override;

  std::string name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t classes() const override { return 10; }
  ImageShape image_shape() const override { return {3, 32, 32}; }
  int32_t label(int64_t i) const override { return labels_[static_cast<size_t>(i)]; }
  // Errors: DataError when the file cannot be read any more or has become shorter.
  void read(int64_t i, std::span<uint8_t> pixels) const override;
  std::string digest() const override { return digest_; }

 private:
  class File;

  std::string name_;
  std::vector<File> files_;
  std::vector<uint8_t> labels_;
  std::string digest_;
};

// dir/cifar-10-batches-bin, or dir itself when it holds one of the set's files; an empty path when
// there is neither.
std::filesystem::path find_cifar10_folder(const std::filesystem::path& dir);
// The set as Python pickles, which are never read, in dir/cifar-10-batches-py or dir itself.
bool has_cifar10_pickles(const std::filesystem::path& dir);

// data_batch_1.bin to data_batch_5.bin and test_batch.bin in find_cifar10_folder(dir).
// Errors: DataError listing what was looked for and is missing, naming the archive to fetch where
// only pickles are there; those of Cifar10.
DatasetPair open_cifar10(const std::filesystem::path& dir, Splits splits = Splits::kBoth);

}  // namespace lockstep::data
#pragma GCC visibility pop
