#include "data/image_folder.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/printable.h"
#include "data/codecs/decode_image.h"
#include "data/random_resized_crop.h"
#include "data/resample.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 224;         // of what a network sees
constexpr int64_t kResizedSide = 256;  // the short one, before the centre is cut out

void read_file(const fs::path& path, std::vector<std::byte>& bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw UnreadableImage("the file cannot be opened");
  bytes.resize(static_cast<size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) {
    throw UnreadableImage("the file cannot be read");
  }
}

Resample centre_of(const ImageSize& image) {
  const int64_t shorter = std::min(image.height, image.width);
  const auto resized = [&](int64_t side) { return kResizedSide * side / shorter; };
  const ImageSize size{resized(image.height), resized(image.width)};
  const auto middle = [](int64_t side) {  // rounds halves to even, as Python does
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(side - kSide) / 2));
  };
  return {.box = whole(image),
          .size = size,
          .window = {middle(size.height), middle(size.width), kSide, kSide}};
}

// Pixels are drawn as a sequence, so that ten attempts may use as many numbers as they want.
class CropRandom {
 public:
  CropRandom(const Augmentation& augmentation, int64_t epoch, int64_t image)
      : stream_(augmentation.seed,
                RandomPurpose::kAugment,
                static_cast<uint32_t>(epoch),
                static_cast<uint64_t>(image)) {}

  float uniform(float low, float high) {
    const float unit = static_cast<float>(stream_.next() >> 8) * 0x1p-24F;
    return low + unit * (high - low);
  }
  int64_t below(int64_t n) { return stream_.below(static_cast<uint32_t>(n)); }

 private:
  PhiloxStream stream_;
};

[[noreturn]] void throw_other_classes(const ClassFolders& train, const ClassFolders& val) {
  std::vector<std::string> differing;
  std::ranges::set_symmetric_difference(train.classes, val.classes, std::back_inserter(differing));
  const auto has = [&](const ClassFolders& split) {
    return std::ranges::binary_search(split.classes, differing.front());
  };
  throw DataError(
      fmt::format("train and val have different classes: {} and {}",
                  train.classes.size(),
                  val.classes.size()),
      fmt::format("{} is in {} alone{}",
                  printable(differing.front()),
                  has(train) ? "train" : "val",
                  differing.size() > 1
                      ? fmt::format(", and so are {} more in one of them", differing.size() - 1)
                      : ""),
      "the same folders in both; images that lie in val itself are to be sorted into them first");
}

}  // namespace

ImageFolder::ImageFolder(std::string name, fs::path root)
    : name_(std::move(name)), root_(std::move(root)), folders_(find_class_folders(root_)) {}

ImageShape ImageFolder::image_shape() const {
  return {.channels = 3, .height = kSide, .width = kSide};
}

template <class Choose>
void ImageFolder::read(int64_t i,
                       const Choose& choose,
                       bool flip,
                       std::span<uint8_t> pixels) const {
  thread_local std::vector<std::byte> bytes;
  thread_local Image image;
  try {
    read_file(root_ / file(i).path, bytes);
    Resample what;
    const auto region = [&](const ImageSize& size) { return needed(what = choose(size)); };
    decode_image(bytes, region, image);
    resample(image, what, flip, pixels);
  } catch (const UnreadableImage& error) {
    throw UnreadableImage(fmt::format("{}: {}", printable(file(i).path), error.why()));
  }
}

void ImageFolder::read(int64_t i, std::span<uint8_t> pixels) const {
  read(i, centre_of, false, pixels);
}

void ImageFolder::read_for_training(int64_t i,
                                    int64_t epoch,
                                    const Augmentation& augmentation,
                                    std::span<uint8_t> pixels) const {
  if (!augmentation.resized_crop) return read(i, pixels);
  CropRandom random(augmentation, epoch, i);
  const bool flip = random.below(2) == 1 && augmentation.flip;
  const auto choose = [&](const ImageSize& size) {
    return Resample{.box = draw_resized_crop(size, random),
                    .size = {kSide, kSide},
                    .window = {.height = kSide, .width = kSide}};
  };
  read(i, choose, flip, pixels);
}

std::string ImageFolder::digest() const {
  std::string all;
  for (const std::string& name : folders_.classes) all += name + '\n';
  for (const ImageFile& image : folders_.files)
    all += fmt::format("{} {}\n", image.path, image.bytes);
  return to_hex(lockstep::digest(std::as_bytes(std::span(all))));
}

DatasetPair open_image_folders(const fs::path& dir) {
  auto train = std::make_shared<ImageFolder>("imagefolder/train", dir / "train");
  auto val = std::make_shared<ImageFolder>("imagefolder/val", dir / "val");
  if (train->folders().classes != val->folders().classes) {
    throw_other_classes(train->folders(), val->folders());
  }
  return {.train = std::move(train), .test = std::move(val)};
}

}  // namespace lockstep::data
