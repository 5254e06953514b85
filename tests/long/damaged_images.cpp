// Decodes damaged copies of images as training does. Built under AddressSanitizer and UBSan by
// damaged_images.sh, which says more.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include "core/philox.h"
#include "data/codecs/decode_image.h"
#include "data/random_resized_crop.h"
#include "data/resample.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

constexpr double kLimitSeconds = 60;  // of processor time for a copy, slowed down by sanitizers
constexpr int64_t kLimitMib = 3072;   // resident, with what AddressSanitizer adds

struct File {
  std::string path;
  Bytes bytes;
};

std::vector<File> read_files(const std::vector<std::string>& folders) {
  std::vector<File> files;
  for (const std::string& folder : folders) {
    using Options = fs::directory_options;
    for (const auto& entry :
         fs::recursive_directory_iterator(folder, Options::follow_directory_symlink)) {
      if (!entry.is_regular_file() || entry.path().extension() == ".tsv") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      files.push_back({.path = entry.path().lexically_relative(folder).string(),
                       .bytes = Bytes(std::istreambuf_iterator<char>(in), {})});
    }
  }
  std::ranges::sort(files, {}, &File::path);
  return files;
}

class Random {
 public:
  Random(uint64_t seed, int64_t copy)
      : stream_(seed, RandomPurpose::kAugment, 0, static_cast<uint64_t>(copy)) {}

  int64_t below(int64_t n) { return stream_.below(static_cast<uint32_t>(n)); }
  float uniform(float low, float high) {
    return low + static_cast<float>(stream_.next() >> 8) * 0x1p-24F * (high - low);
  }

 private:
  PhiloxStream stream_;
};

auto at(Bytes& bytes, int64_t place) {
  return bytes.begin() + place;
}

// Bytes anywhere, a bit or all of them.
void flip(Bytes& bytes, Random& random) {
  for (int64_t left = 1 + random.below(16); left > 0; --left) {
    auto& byte = *at(bytes, random.below(std::ssize(bytes)));
    byte = static_cast<uint8_t>(random.below(2) == 0 ? byte ^ (1 << random.below(8))
                                                     : random.below(256));
  }
}

void cut(Bytes& bytes, Random& random) {
  bytes.resize(static_cast<size_t>(1 + random.below(std::ssize(bytes))));
}

// A part of another file, in the place of one's own or between.
void splice(Bytes& bytes, const Bytes& other, Random& random) {
  if (other.empty()) return;
  const int64_t from = random.below(std::ssize(other));
  const int64_t count = 1 + random.below(std::min<int64_t>(std::ssize(other) - from, 4096));
  const int64_t to = random.below(std::ssize(bytes));
  if (random.below(2) == 0) {
    bytes.erase(at(bytes, to), at(bytes, std::min(to + count, std::ssize(bytes))));
  }
  bytes.insert(at(bytes, to), other.begin() + from, other.begin() + from + count);
}

// Sizes, counts and lengths: of a JPEG's segments, a PNG's chunks, or anywhere near the beginning.
void change_field(Bytes& bytes, Random& random) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i + 12 < std::ssize(bytes) && i < 65536; ++i) {
    const auto byte = [&](int64_t k) { return bytes[static_cast<size_t>(i + k)]; };
    const bool segment = byte(0) == 0xFF && byte(1) >= 0xC0 && byte(1) != 0xFF;
    const bool chunk = std::all_of(at(bytes, i + 4), at(bytes, i + 8), [](uint8_t c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    });
    if (segment) places.push_back(i + 2);
    if (chunk) places.push_back(i);
  }
  const auto count = std::ssize(places);
  int64_t place = count > 0 && random.below(4) > 0
                      ? places[static_cast<size_t>(random.below(count))] + random.below(10)
                      : random.below(std::min<int64_t>(std::ssize(bytes), 700));
  constexpr uint8_t kEdges[] = {0, 1, 2, 3, 4, 8, 0x0F, 0x10, 0x7F, 0x80, 0xFE, 0xFF};
  for (int64_t left = 1 + random.below(4); left > 0 && place < std::ssize(bytes); --left) {
    *at(bytes, place++) = kEdges[random.below(std::ssize(kEdges))];
  }
}

Bytes damaged(const std::vector<File>& files, Random& random) {
  const auto any = [&]() -> const File& {
    return files[static_cast<size_t>(random.below(std::ssize(files)))];
  };
  Bytes bytes = any().bytes;
  for (int64_t left = 1 + random.below(3); left > 0 && !bytes.empty(); --left) {
    switch (random.below(4)) {
      case 0:
        flip(bytes, random);
        break;
      case 1:
        cut(bytes, random);
        break;
      case 2:
        splice(bytes, any().bytes, random);
        break;
      default:
        change_field(bytes, random);
    }
  }
  return bytes;
}

// As a training image. Returns whether it could be had.
bool decode(const Bytes& bytes, Random& random) {
  constexpr int64_t kSide = 224;
  thread_local data::Image image;
  thread_local Bytes pixels(kSide * kSide * 3);
  data::Resample what;
  try {
    data::decode_image(
        std::as_bytes(std::span(bytes)),
        [&](const data::ImageSize&) {  // every other one as it is
          return random.below(2) == 0 ? 1 : 1 << random.below(4);
        },
        [&](const data::ImageSize& size) {
          what = {.box = data::draw_resized_crop(size, random),
                  .size = {kSide, kSide},
                  .window = {.height = kSide, .width = kSide},
                  .by = static_cast<data::Interpolation>(random.below(2))};
          return data::needed(what);
        },
        image);
  } catch (const data::UnreadableImage&) {
    return false;
  }
  data::resample(image, what, random.below(2) == 1, pixels);
  return true;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int64_t peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

int64_t copy_in_hand = 0;  // for the last words of a process that a sanitizer ends

void name_copy() {
  fmt::print(stderr, "copy {} did it\n", copy_in_hand);
}

struct Outcome {
  int64_t decoded = 0;
  int64_t refused = 0;
  double worst_s = 0;
  int64_t worst_copy = 0;

  void add(const Bytes& bytes, Random& random) {
    alarm(20 * static_cast<unsigned>(kLimitSeconds));  // for loops without an end
    const double start = processor_seconds();
    ++(decode(bytes, random) ? decoded : refused);
    const double seconds = processor_seconds() - start;
    if (seconds > kLimitSeconds || peak_mib() > kLimitMib) {
      fmt::print(stderr,
                 "copy {}: {:.1f} s and {} MiB are beyond {} s or {} MiB\n",
                 copy_in_hand,
                 seconds,
                 peak_mib(),
                 kLimitSeconds,
                 kLimitMib);
      std::exit(1);  // NOLINT(concurrency-mt-unsafe): there is one thread
    }
    if (seconds <= worst_s) return;
    worst_s = seconds;
    worst_copy = copy_in_hand;
  }
};

int run(uint64_t seed, int64_t first, int64_t count, const std::vector<std::string>& folders) {
  const std::vector<File> files = read_files(folders);
  if (files.empty()) return 2;
  Outcome whole;
  for (const File& file : files) {
    --copy_in_hand;  // below 0: a file as it is
    Random random(seed, 0);
    whole.add(file.bytes, random);
  }
  fmt::print("{} images as they are: {} decoded, {} refused\n",
             files.size(),
             whole.decoded,
             whole.refused);
  Outcome copies;
  for (copy_in_hand = first; copy_in_hand < first + count; ++copy_in_hand) {
    Random random(seed, copy_in_hand);
    const Bytes bytes = damaged(files, random);
    copies.add(bytes, random);
    const int64_t done = copy_in_hand - first + 1;
    if (done % 1000 != 0) continue;
    fmt::print("{} of {}, worst {:.2f} s (copy {}), peak {} MiB\n",
               done,
               count,
               copies.worst_s,
               copies.worst_copy,
               peak_mib());
    std::fflush(stdout);
  }
  fmt::print(
      "seed {}, copies {} to {} of {} images: {} decoded, {} refused, no finding; worst {:.2f} s "
      "of processor time (copy {}), peak {} MiB\n",
      seed,
      first,
      first + count - 1,
      files.size(),
      copies.decoded,
      copies.refused,
      std::max(copies.worst_s, whole.worst_s),
      copies.worst_copy,
      peak_mib());
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: damaged_images SEED FIRST COUNT FOLDER...\n");
    return 2;
  }
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(lockstep::name_copy);
#endif
  return lockstep::run(std::strtoull(argv[1], nullptr, 10),
                       std::strtoll(argv[2], nullptr, 10),
                       std::strtoll(argv[3], nullptr, 10),
                       {argv + 4, argv + argc});
}
