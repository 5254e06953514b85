#include "engine/step/skipped_photos.h"

#include <sstream>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/error.h"

namespace lockstep {

void SkippedPhotos::note(std::span<const data::SkippedImage> skipped) {
  for (const data::SkippedImage& image : skipped) {
    if (!known_.contains(image.index)) notes_.try_emplace(image.index, image.why);
  }
}

void SkippedPhotos::agree(Communicator& ranks) {
  std::string mine;
  for (const auto& [index, why] : notes_) mine += fmt::format("{} {}{}", index, why, '\0');
  notes_.clear();

  std::map<int64_t, std::string> news;
  for (const std::string& text : comm::gather_texts(ranks, std::move(mine))) {
    std::istringstream notes(text);
    int64_t index = 0;
    std::string why;
    while (notes >> index && std::getline(notes >> std::ws, why, '\0')) {
      news.try_emplace(index, why);
    }
  }
  std::erase_if(news, [&](const auto& image) { return !known_.insert(image.first).second; });
  for (const auto& [index, why] : news) {
    if (ranks.rank() == 0) warn_(fmt::format("skipped {}; the next image takes its place", why));
  }
  if (std::ssize(known_) <= limit_) return;
  throw DataError(fmt::format("more than {} images of the data set cannot be read", limit_),
                  "the last one is " + news.rbegin()->second,
                  "check the disk and how the files were copied; each file is named above");
}

}  // namespace lockstep
