// CIFAR-10 in its binary form.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Color images of 32 x 32 with labels 0..9, from files of 10,000 records each: a label, then 1,024
// bytes each of red, green and blue. Labels are held in memory. Images are read from the open files
// when needed: all ranks of a host share the system's page cache, and truncating a file during a
// run is an error, while with a memory map it would kill the process.
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

// Returns dir/cifar-10-batches-bin, or dir itself when it holds one of the set's files, or else an
// empty path.
std::filesystem::path find_cifar10_folder(const std::filesystem::path& dir);
// Tells whether dir/cifar-10-batches-py or dir itself holds the set as Python pickles, which are
// never read.
bool has_cifar10_pickles(const std::filesystem::path& dir);

// Opens data_batch_1.bin to data_batch_5.bin and test_batch.bin in find_cifar10_folder(dir).
// Errors: DataError that lists the files that are missing, or names the archive to fetch when there
// are only pickles; those of Cifar10.
DatasetPair open_cifar10(const std::filesystem::path& dir, Splits splits = Splits::kBoth);

}  // namespace lockstep::data
#pragma GCC visibility pop
