// The interface of a set of labeled images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/augmentation.h"
#include "core/dtype.h"
#include "data/codecs/unreadable_image.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

struct ImageShape {
  int64_t channels = 1;
  int64_t height = 0;
  int64_t width = 0;

  int64_t numel() const { return channels * height * width; }
  bool operator==(const ImageShape& other) const = default;
};

// Images 0..size()-1 of the same shape, with 8 bits per channel, or samples of floats. Every call
// with the same index gives the same bytes. Thread safety: all functions may be called from any
// thread.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  virtual std::string name() const = 0;  // "mnist/train"
  virtual int64_t size() const = 0;      // at least 1
  virtual int64_t classes() const = 0;
  virtual std::vector<std::string> class_names() const { return {}; }  // by label; may be empty
  virtual ImageShape image_shape() const = 0;
  // The shape that training sees in this epoch: image_shape(), or a smaller one.
  virtual ImageShape training_shape(int64_t /*epoch*/) const { return image_shape(); }

  // kU8, or kF32 for samples that a network gets as they are: not normalized, not augmented, and
  // of shape (N,C) where height and width are 1. read() then writes the bytes of the floats.
  virtual Dtype dtype() const { return Dtype::kU8; }
  // The floats of a target, for a loss of the caller's; 0: labels are the targets.
  virtual int64_t target_size() const { return 0; }

  // In [0, classes()). Requires: 0 <= i < size(), here and below.
  virtual int32_t label(int64_t i) const = 0;
  // Requires: target.size() == target_size().
  virtual void read_target(int64_t /*i*/, std::span<float> /*target*/) const {}
  // Writes the pixels of image i in HWC order. Requires: pixels.size() == image_shape().numel(), or
  // four times that for floats.
  // Errors: UnreadableImage, here and below, if each image is a file of its own.
  virtual void read(int64_t i, std::span<uint8_t> pixels) const = 0;
  // Writes image i % size() as training sees it in this epoch: cropped after padding and flipped,
  // unless a data set overrides this. The changes are drawn from i, so that i and i + size() are
  // two views of the same image. Requires: i >= 0, pixels.size() == training_shape(epoch).numel().
  virtual void read_for_training(int64_t i,
                                 int64_t epoch,
                                 const Augmentation& augmentation,
                                 std::span<uint8_t> pixels) const;

  // XXH3-64 in hex over everything that read() and label() return, or over its sources. Ranks and
  // resumed runs compare it.
  virtual std::string digest() const = 0;
  // The number of files beside the images that were left out, by extension.
  virtual std::map<std::string, int64_t> left_out() const { return {}; }
};

// The splits to open. An evaluation does not need training images, which may be absent or many.
enum class Splits : uint8_t { kBoth, kTest };

struct DatasetPair {
  std::shared_ptr<const Dataset> train;  // null where only Splits::kTest was opened
  std::shared_ptr<const Dataset> test;
};

// Pads `from` on each side as `augmentation` says, and writes its crop to `to`, flipped if `change`
// says so.
// Shapes: from, to: HWC of `shape`, not overlapping. Requires: pad_fits(); offsets in 0..2 pad.
// Source: torchvision.transforms.RandomCrop and RandomHorizontalFlip, with the same possible
// results but other random numbers; torch.nn.functional.pad for mirrored padding.
void crop_flip(const ImageShape& shape,
               const Augmentation& augmentation,
               const CropFlip& change,
               std::span<const uint8_t> from,
               std::span<uint8_t> to);

}  // namespace lockstep::data
#pragma GCC visibility pop
