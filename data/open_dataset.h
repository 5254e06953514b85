// Opens a data set by its name, or by the files in its folder.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"
#include "data/photo_options.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Detects the data set in `dir`: "mnist", "fashion-mnist", "cifar10" or "imagefolder". The last one
// is recognized by its folder `val`, because an evaluation needs no more. If `dir` holds several,
// returns the only one whose images have `channels` channels (0: any).
// Errors: DataError when dir is no folder, when it holds no known data set (the error lists what
// was looked for) or when it holds several that fit.
std::string detect_dataset(const std::filesystem::path& dir, int64_t channels = 0);

// Opens the data set `name`: digits or shapes (dir is not used), mnist, fashion-mnist, cifar10,
// imagefolder, or auto for detect_dataset(dir). `photos` is for imagefolder.
// Errors: UsageError for other names; those of detect_dataset and of the set that is opened.
DatasetPair open_dataset(const std::string& name,
                         const std::filesystem::path& dir,
                         const PhotoOptions& photos = {},
                         Splits splits = Splits::kBoth);

}  // namespace lockstep::data
#pragma GCC visibility pop
