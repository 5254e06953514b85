#include "trainers/loop/skipped_photos.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "comm/gather.h"
#include "core/error.h"

namespace lockstep::trainers {
namespace {

// On its way to other ranks; a longer name loses its end.
struct Note {
  int64_t index = -1;
  std::array<char, 504> why{};
};

}  // namespace

void SkippedPhotos::note(std::span<const data::SkippedImage> skipped) {
  for (const data::SkippedImage& image : skipped) {
    if (!known_.contains(image.index)) notes_.try_emplace(image.index, image.why);
  }
}

void SkippedPhotos::agree(Communicator& ranks) {
  const int64_t most = std::ranges::max(comm::gather_value(ranks, noted()));
  if (most == 0) return;
  std::vector<Note> notes(static_cast<size_t>(most));
  auto next = notes.begin();
  for (const auto& [index, why] : notes_) {
    next->index = index;
    std::copy_n(why.begin(), std::min(why.size(), next->why.size() - 1), next->why.begin());
    ++next;
  }
  const std::vector<Note> all = comm::gather_values(ranks, std::span<const Note>(notes));
  notes_.clear();

  std::map<int64_t, std::string> news;
  for (const Note& note : all) {
    if (note.index >= 0) news.try_emplace(note.index, note.why.data());
  }
  std::erase_if(news, [&](const auto& image) { return !known_.insert(image.first).second; });
  for (const auto& [index, why] : news) {
    if (ranks.rank() == 0) warn_(fmt::format("skipped {}; the next image takes its place", why));
  }
  if (std::ssize(known_) <= limit_) return;
  throw DataError(fmt::format("more than {} images of the data set cannot be read", limit_),
                  "the last one is " + news.rbegin()->second,
                  "check the disk and how the files came there; each was named above");
}

}  // namespace lockstep::trainers
