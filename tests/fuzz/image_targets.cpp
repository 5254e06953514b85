// Photos, and folders of them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "data/class_folders.h"
#include "data/codecs/decode_image.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/target.h"
#include "tests/support/image_files.h"

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;

// Decodes as training does: shrunk by two where that is possible, and not its edges.
void decode(std::string_view input) {
  if (input.empty()) return;
  const std::span<const std::byte> file = std::as_bytes(std::span(input.substr(1)));
  const int shrink = 1 << (input.front() & 1);
  data::Image image;
  data::decode_image(
      file,
      [&](const data::ImageSize&) { return shrink; },
      [](const data::ImageSize& size) {
        return Region{.top = size.height / 4,
                      .left = size.width / 4,
                      .height = (size.height + 1) / 2,
                      .width = (size.width + 1) / 2};
      },
      image);
  const size_t bytes = static_cast<size_t>(image.region.height * image.region.width * 3);
  if (image.pixels.size() < bytes) throw std::logic_error("an image has too few pixels");
}

std::vector<std::string> image_seeds() {
  std::vector<std::string> seeds;
  for (const char* kind : {"jpeg_420", "jpeg_progressive", "jpeg_gray", "png_rgb"}) {
    const std::vector<uint8_t> file = testing::image_file(kind);
    seeds.push_back('\1' + std::string(file.begin(), file.end()));
  }
  return seeds;
}

// Lines: "d NAME" makes a folder, "f NAME" a file, "l NAME TARGET" a link. All are in one.
void list_folders(std::string_view input) {
  const fs::path root = scratch() / "tree";
  fs::remove_all(root);
  fs::create_directories(root);
  std::istringstream lines{std::string(input.substr(0, 1000))};
  std::error_code ignored;
  const auto inside = [&](const std::string& name) {
    const fs::path path = (root / fs::path(name).relative_path()).lexically_normal();
    return path.string().starts_with(root.string()) ? path : root / "outside";
  };
  std::string kind, name, target;
  while (lines >> kind >> name) {
    if (kind == "d") fs::create_directories(inside(name), ignored);
    if (kind == "f") std::ofstream(inside(name)) << "x";
    if (kind == "l" && lines >> target) {
      const fs::path link = inside(name);
      fs::create_symlink(inside(target).lexically_relative(link.parent_path()), link, ignored);
    }
  }
  const data::ClassFolders found = data::find_class_folders(root);
  for (const data::ImageFile& file : found.files) {
    if (!fs::exists(fs::symlink_status(root / file.path)))
      throw std::logic_error("no such file: " + file.path);
    if (file.label < 0 || static_cast<size_t>(file.label) >= found.classes.size()) {
      throw std::logic_error("no such class");
    }
  }
}

std::vector<std::string> folder_seeds() {
  return {"d a\nd b\nf a/1.jpg\nf b/2.png\n",
          "d a\nd b\nf a/1.jpg\nf b/2.png\nl a/loop .\nl a/again a\n",
          "d a/deep\nd b\nf a/deep/1.JPEG\nf b/2.txt\nl b/3.jpg a/deep/1.JPEG\n"};
}

constexpr Target kImageTargets[] = {
    {"image", decode, image_seeds},
    {"class_folders", list_folders, folder_seeds},
};

}  // namespace

std::span<const Target> image_targets() {
  return kImageTargets;
}

}  // namespace lockstep::fuzz
