#include "data/image_folder.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/check.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/words.h"
#include "data/codecs/decode_image.h"
#include "data/image_random.h"
#include "data/load_seconds.h"
#include "data/load_span.h"
#include "data/rand_augment.h"
#include "data/random_resized_crop.h"
#include "data/trivial_augment.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

// Notebooks leave hidden folders with copies of images.
void refuse_hidden_class(const ClassFolders& train, const ClassFolders& val) {
  for (size_t label = 0; label < train.classes.size(); ++label) {
    if (!train.classes[label].starts_with('.')) continue;
    if (std::ranges::count(val.files, static_cast<int32_t>(label), &ImageFile::label) > 0) continue;
    throw DataError(
        fmt::format("{} is a hidden folder in train alone", printable(train.classes[label])),
        "each folder in train is a class",
        "remove it");
  }
}

Interpolation draw_interpolation(ImageRandom random) {
  return random.below(2) == 1 ? Interpolation::kBicubic : Interpolation::kBilinear;
}

}  // namespace

ImageFolder::ImageFolder(std::string name, fs::path root, const SplitOptions& options)
    : name_(std::move(name)),
      root_(std::move(root)),
      options_(options),
      folders_(find_class_folders(root_, options.classes)) {
  require_codecs();
  LS_CHECK(1 <= options.crop && options.crop <= options.resize,
           "[image_folder] got a crop of {} of images resized to {}",
           options.crop,
           options.resize);
  if (options.cache_room) cache_ = std::make_unique<PhotoCache>(options.cache_room);
}

Resample ImageFolder::center_of(const ImageSize& image, int64_t crop) const {
  const int64_t shorter = std::min(image.height, image.width);
  const auto resized = [&](int64_t side) { return options_.resize * side / shorter; };
  const ImageSize size{resized(image.height), resized(image.width)};
  const auto middle = [&](int64_t side) {  // rounds halves to even, as Python does
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(side - crop) / 2));
  };
  return {.box = whole(image),
          .size = size,
          .window = {middle(size.height), middle(size.width), crop, crop},
          .by = options_.by};
}

int ImageFolder::shrink_for(const Resample& what) const {
  int shrink = 1;
  if (!options_.shrink) return shrink;
  const auto fits = [&](int by) {
    return what.box.height >= by * what.size.height && what.box.width >= by * what.size.width;
  };
  while (shrink < 8 && fits(2 * shrink)) shrink *= 2;
  return shrink;
}

FileStamp ImageFolder::load(int64_t i, std::vector<std::byte>& bytes) const {
  const LoadClock clock(load_seconds().disk);
  const LoadSpan span("read");
  if (options_.slow_disk.count() > 0) std::this_thread::sleep_for(options_.slow_disk);
  const FileStamp stamp = read_file(path_of(i), bytes);
  if (stamp.bytes != file(i).bytes) {
    throw UnreadableImage(
        fmt::format("the file has {} bytes now, it had {}", stamp.bytes, file(i).bytes));
  }
  return stamp;
}

template <class Choose>
bool ImageFolder::read_cached(int64_t i,
                              const Choose& choose,
                              bool flip,
                              std::span<uint8_t> pixels) const {
  if (!cache_) return false;
  const std::shared_ptr<const CachedPhoto> cached = cache_->find(i);
  if (!cached || cached->stamp != stamp_of(path_of(i))) return false;
  const Resample what = choose(cached->size);
  if (cached->can_shrink && cached->shrink != shrink_for(what)) return false;
  const Region& region = cached->image.region;
  const ImageSize shrunk = {.height = region.height, .width = region.width};
  const LoadSpan span("augment");
  resample(cached->image, shrunk_by(cached->shrink, what, shrunk), flip, pixels);
  return true;
}

template <class Choose>
void ImageFolder::decode_file(int64_t i,
                              const Choose& choose,
                              bool flip,
                              std::span<uint8_t> pixels) const {
  thread_local std::vector<std::byte> bytes;
  thread_local Image image;
  CachedPhoto photo;
  photo.stamp = load(i, bytes);
  Resample what;
  bool caches = false;
  const auto begin = [&](const ImageSize& size) {
    photo.size = size;
    what = choose(size);
  };
  const auto shrink = [&](const ImageSize& size) {
    begin(size);
    photo.can_shrink = true;
    return photo.shrink = shrink_for(what);
  };
  const auto region = [&](const ImageSize& size) {
    if (!photo.can_shrink) begin(size);
    what = shrunk_by(photo.shrink, what, size);
    caches = cache_ && cache_->fits(size);
    return caches ? whole(size) : needed(what);
  };
  {
    const LoadClock clock(load_seconds().decode);
    const LoadSpan span("decode");
    if (options_.slow_decode.count() > 0) std::this_thread::sleep_for(options_.slow_decode);
    decode_image(bytes, shrink, region, image);
  }
  {
    const LoadSpan span("augment");
    resample(image, what, flip, pixels);
  }
  if (!caches) return;
  photo.image = image;
  cache_->store(i, std::move(photo));
}

template <class Choose>
void ImageFolder::read(int64_t i,
                       const Choose& choose,
                       bool flip,
                       std::span<uint8_t> pixels) const {
  try {
    if (!read_cached(i, choose, flip, pixels)) decode_file(i, choose, flip, pixels);
  } catch (const UnreadableImage& error) {
    throw UnreadableImage(fmt::format("{}: {}", printable(file(i).path), error.why()));
  }
}

void ImageFolder::read(int64_t i, std::span<uint8_t> pixels) const {
  read(i, [&](const ImageSize& size) { return center_of(size, options_.crop); }, false, pixels);
}

void ImageFolder::read_for_training(int64_t i,
                                    int64_t epoch,
                                    const Augmentation& augmentation,
                                    std::span<uint8_t> pixels) const {
  const int64_t image = i % size();
  const int64_t crop = training_shape(epoch).height;
  if (!augmentation.resized_crop) {
    const auto center = [&](const ImageSize& size) { return center_of(size, crop); };
    return read(image, center, false, pixels);
  }
  ImageRandom random(augmentation.seed, RandomPurpose::kAugment, epoch, i);
  const PhiloxBlock block = augmentation_block(augmentation, epoch, i);
  const bool flip = draw_flip(augmentation, epoch, i, block, 0);
  random.below(2);  // skips the word that the flip is drawn from
  const Interpolation by = options_.crops_by
                               ? *options_.crops_by
                               : draw_interpolation(ImageRandom(
                                     augmentation.seed, RandomPurpose::kInterpolation, epoch, i));
  const auto choose = [&](const ImageSize& size) {
    ImageRandom crop_random = random;
    return Resample{.box = draw_resized_crop(size, crop_random),
                    .size = {crop, crop},
                    .window = {.height = crop, .width = crop},
                    .by = by};
  };
  read(image, choose, flip, pixels);
  if (!augmentation.trivial && augmentation.rand.layers == 0) return;
  const ImageSize changed = {crop, crop};
  const LoadSpan span("augment");
  if (augmentation.trivial) {
    ImageRandom change_random(augmentation.seed, RandomPurpose::kTrivialAugment, epoch, i);
    TrivialChange drawn = draw_trivial_change(change_random);
    drawn.bilinear = augmentation.bilinear;
    change(drawn, changed, pixels);
  }
  ImageRandom layer_random(augmentation.seed, RandomPurpose::kRandAugment, epoch, i);
  for (int64_t layer = 0; layer < augmentation.rand.layers; ++layer) {
    RandChange drawn;
    if (draw_rand_change(augmentation.rand, layer_random, drawn)) change(drawn, changed, pixels);
  }
}

std::string ImageFolder::digest() const {
  std::string all = fmt::format(
      "{} of {}, {}\n", options_.crop, options_.resize, options_.shrink ? "shrunk" : "exact");
  const CropRamp& ramp = options_.ramp;
  if (ramp.from > 0)
    all += fmt::format("from {}, epochs {}:{}\n", ramp.from, ramp.first, ramp.last);
  if (options_.by == Interpolation::kBicubic) all += "bicubic\n";
  if (!options_.crops_by) all += "crops drawn\n";
  if (options_.crops_by == Interpolation::kBicubic) all += "crops bicubic\n";
  for (const std::string& name : folders_.classes) all += name + '\n';
  for (const ImageFile& image : folders_.files)
    all += fmt::format("{} {}\n", image.path, image.bytes);
  return to_hex(lockstep::digest(std::as_bytes(std::span(all))));
}

DatasetPair open_image_folders(const fs::path& dir, const PhotoOptions& photos, Splits splits) {
  SplitOptions options{.crop = photos.train_crop,
                       .ramp = photos.train_ramp,
                       .resize = std::max(photos.val_resize, photos.train_crop),
                       .by = photos.val_by,
                       .crops_by = photos.train_by,
                       .shrink = photos.shrink,
                       .slow_disk = photos.slow_disk,
                       .slow_decode = photos.slow_decode};
  options.classes = photos.classes;
  if (photos.cache_bytes > 0) {
    options.cache_room = std::make_shared<std::atomic<int64_t>>(photos.cache_bytes);
  }
  std::shared_ptr<ImageFolder> train;
  if (splits == Splits::kBoth) {
    train = std::make_shared<ImageFolder>("imagefolder/train", dir / "train", options);
    options.classes = train->class_names();
  }
  options.crop = photos.val_crop;
  options.ramp = {};
  options.crops_by = Interpolation::kBilinear;
  options.resize = photos.val_resize;
  auto val = std::make_shared<ImageFolder>("imagefolder/val", dir / "val", options);
  if (train) refuse_hidden_class(train->folders(), val->folders());
  return {.train = std::move(train), .test = std::move(val)};
}

}  // namespace lockstep::data
