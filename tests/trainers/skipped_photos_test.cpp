#include "engine/step/skipped_photos.h"

#include <mutex>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "comm/shared/thread_ranks.h"
#include "core/error.h"

namespace lockstep::trainers::skipped_photos_test {
namespace {

using ::testing::ElementsAre;

std::vector<data::SkippedImage> images(std::initializer_list<int64_t> indices) {
  std::vector<data::SkippedImage> result;
  for (const int64_t i : indices) result.push_back({.index = i, .why = fmt::format("{}.jpg", i)});
  return result;
}

TEST(SkippedPhotos, AreNamedOnceOverAllRanks) {
  for (const int count : {1, 2, 3}) {
    std::vector<std::string> said;
    comm::spawn_ranks(count, [&](Communicator& ranks) {
      SkippedPhotos photos(20, [&](const std::string& text) {
        EXPECT_EQ(ranks.rank(), 0);
        said.push_back(text);
      });
      photos.note(images({7, 3}));
      if (ranks.rank() == count - 1) photos.note(images({5, 7}));
      photos.agree(ranks);
      photos.note(images({5}));
      EXPECT_EQ(photos.noted(), 0);
      photos.agree(ranks);
    });
    EXPECT_THAT(said,
                ElementsAre("skipped 3.jpg; the next image takes its place",
                            "skipped 5.jpg; the next image takes its place",
                            "skipped 7.jpg; the next image takes its place"));
  }
}

// The reason contains photo names, so it can be long.
TEST(SkippedPhotos, KeepAllOfTheReason) {
  const std::string why = std::string(2000, 'a') + ".jpg: two\nlines";
  std::vector<std::string> said;
  comm::spawn_ranks(2, [&](Communicator& ranks) {
    SkippedPhotos photos(20, [&](const std::string& text) { said.push_back(text); });
    if (ranks.rank() == 1) photos.note(std::vector<data::SkippedImage>{{.index = 4, .why = why}});
    photos.agree(ranks);
  });
  EXPECT_THAT(said, ElementsAre("skipped " + why + "; the next image takes its place"));
}

TEST(SkippedPhotos, AreTooManyOnAllRanksAtOnce) {
  std::mutex mutex;
  std::vector<std::string> why;
  comm::spawn_ranks(3, [&](Communicator& ranks) {
    SkippedPhotos photos(9000, [](const std::string&) {});
    const int64_t first = 5 * ranks.rank();
    photos.note(images({first, first + 1, first + 2}));
    photos.agree(ranks);
    if (ranks.rank() == 1) photos.note(images({20}));
    photos.agree(ranks);  // ten so far
    if (ranks.rank() == 2) photos.note(images({19}));
    try {
      photos.agree(ranks);
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "more than 10 images of the data set cannot be read");
      const std::lock_guard lock(mutex);
      why.push_back(error.why());
    }
  });
  EXPECT_THAT(
      why,
      ElementsAre("the last one is 19.jpg", "the last one is 19.jpg", "the last one is 19.jpg"));
}

}  // namespace
}  // namespace lockstep::trainers::skipped_photos_test
