#include "trainers/loop/training_data.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "data/open_dataset.h"
#include "data/synthetic.h"
#include "trainers/model/models.h"

namespace lockstep::trainers {
namespace {

struct ImageCounts {
  int64_t train = 0, test = 0;
};

// The image counts of the data set that usually has images of this shape.
ImageCounts counts_of(const data::ImageShape& image) {
  if (image.channels == 1) return {60000, 10000};  // MNIST
  if (image.height == 32) return {50000, 10000};   // CIFAR-10
  return {1281167, 50000};                         // ImageNet
}

data::DatasetPair make_synthetic(const RunRequest& request, data::Splits splits) {
  const ModelOptions usual = usual_network(request.arch, request.cifar_stem);
  const ImageCounts counts = counts_of(usual.image);
  const auto make = [&](int64_t images, uint64_t seed) {
    return std::make_shared<data::Synthetic>(
        data::Synthetic::Options{.images = images,
                                 .classes = request.classes.value_or(usual.classes),
                                 .shape = usual.image,
                                 .seed = seed});
  };
  data::DatasetPair pair{.train = {}, .test = make(counts.test, 1)};
  if (splits == data::Splits::kBoth) pair.train = make(counts.train, 0);
  return pair;
}

// The learning rates of --lr-dry-run depend on the number of images to train on.
data::Splits splits_for(const RunRequest& request) {
  return request.evaluate && !request.lr_dry_run ? data::Splits::kTest : data::Splits::kBoth;
}

data::DatasetPair open_sets(const RunRequest& request, const std::optional<Fault>& fault) {
  if (request.dataset == "synthetic") return make_synthetic(request, splits_for(request));
  data::PhotoOptions photos = request.photos;
  if (fault && fault->kind == "slowdisk") photos.slow_disk = fault->delay();
  if (fault && fault->kind == "slowdecode") photos.slow_decode = fault->delay();
  return data::open_dataset(request.dataset, request.data, photos, splits_for(request));
}

}  // namespace

data::DatasetPair open_training_data(const RunRequest& request, const std::optional<Fault>& fault) {
  data::DatasetPair sets = open_sets(request, fault);
  // What does not fit the images is refused before a run begins.
  if (sets.train) augmentation(request.augmentation, request.seeds.run, *sets.train);
  return sets;
}

std::optional<std::string> note_on_absent_classes(const data::Dataset& images) {
  const std::vector<std::string> names = images.class_names();
  std::vector<bool> present(names.size());
  if (names.empty()) return std::nullopt;
  for (int64_t i = 0; i < images.size(); ++i) present[static_cast<size_t>(images.label(i))] = true;
  const auto found = std::ranges::count(present, true);
  if (found == std::ssize(names)) return std::nullopt;
  const auto first = static_cast<size_t>(std::ranges::find(present, false) - present.begin());
  const int64_t more = std::ssize(names) - found - 1;
  return fmt::format("note: {} has images of {} of {} classes, none of {}{}",
                     images.name(),
                     found,
                     names.size(),
                     printable(names[first]),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::function<void(const std::string& text)> warn_of_images(Console& console) {
  return [&console](const std::string& text) { console.warn("lockstep: warning: " + text); };
}

}  // namespace lockstep::trainers
