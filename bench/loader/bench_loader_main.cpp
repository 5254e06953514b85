// Measures how fast the loader decodes and augments photos while nothing else runs.
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "bench/flags.h"
#include "core/standard_streams.h"
#include "data/image_folder.h"
#include "data/loader.h"
#include "trainers/report/errors.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kBatch = 32;

constexpr std::array kDecoders = {Named<bool>(false, "exact"), Named<bool>(true, "shrunk")};

struct Options {
  std::string dir;
  int64_t workers = 2;
  int64_t passes = 5;
  bool shrink = false;
};

Options parse(const std::vector<std::string>& arguments, std::string& to_print) {
  Options options;
  Flags flags(
      "bench_loader", "How fast photos in class folders become training images.", "flags alone");
  flags.add("--data", "DIR", "", "class folders: DIR/ants/1.jpg", [&](const std::string& text) {
    options.dir = text;
  });
  flags.add_number(
      "-j,--workers", "threads; 0: load on the calling thread", 0, 256, options.workers);
  flags.add_number("--passes", "over the folder, after one to warm up", 1, 100000, options.passes);
  flags.add_choice("--decode", "HOW", "exact or shrunk", kDecoders, options.shrink);
  to_print = flags.parse(arguments);
  if (to_print.empty() && options.dir.empty()) {
    throw UsageError("--data is missing", "photos are decoded from files", "--data DIR/train");
  }
  return options;
}

// Images per second, the first pass left out.
double measure(const Options& options) {
  const data::SplitOptions split = {.shrink = options.shrink};
  const auto photos = std::make_shared<data::ImageFolder>("photos", options.dir, split);
  const data::BatchPlan plan = {.dataset_size = photos->size(), .global_batch = kBatch};
  const int64_t steps = data::steps_per_epoch(plan);
  constexpr int64_t kLeast = 40 * kBatch;  // ten times what is ready before the clock starts
  if (photos->size() * options.passes < kLeast) {
    fmt::print(stderr,
               "bench_loader: note: some of the {} photos were ready before the clock started; "
               "--passes {} makes them few\n",
               photos->size() * options.passes,
               (kLeast - 1) / photos->size() + 1);
  }
  data::Loader loader(photos,
                      data::training_sequence(plan, 0, (1 + options.passes) * steps),
                      {.workers = static_cast<int>(options.workers),
                       .augmentation = {.flip = Flip::kRandom, .resized_crop = true}});
  for (int64_t step = 0; step < steps; ++step) (void)loader.next();
  const auto start = std::chrono::steady_clock::now();
  int64_t images = 0;
  while (loader.left() > 0) images += loader.next().shards.images();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(images) / seconds.count();
}

int run(const std::vector<std::string>& arguments) {
  try {
    std::string to_print;
    const Options options = parse(arguments, to_print);
    if (to_print.empty()) {
      to_print = nlohmann::json{{"images_per_s", measure(options)},
                                {"workers", options.workers},
                                {"decode", options.shrink ? "shrunk" : "exact"}}
                     .dump();
      to_print += '\n';
    }
    fmt::print("{}", to_print);
    return trainers::end_output(0);
  } catch (const Error& error) {
    fmt::print(stderr, "{}", format_error(error));
    return static_cast<int>(error.code());
  }
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::open_standard_streams();
  return lockstep::bench::run({argv + 1, argv + argc});
}
