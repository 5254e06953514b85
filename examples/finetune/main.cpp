// Trains a new classifier of a ResNet-18 on photos and freezes its other layers, whose weights come
// from a file, as PyTorch's tutorial on transfer learning does for a "fixed feature extractor".
// usage: finetune WEIGHTS PHOTOS FILE.safetensors [SIDE [EPOCHS]]
//   WEIGHTS  torchvision's resnet18-*.pth, or a .safetensors file with the same names
//   PHOTOS   a folder with train/CLASS/*.jpg and val/CLASS/*.jpg
//   SIDE     side of the images in pixels, 224 by default
//   EPOCHS   number of epochs, 5 by default
#include <cstdio>
#include <cstdlib>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

namespace {

void freeze_body(const nn::Module& network) {
  for (nn::NamedParameter& parameter : network.named_parameters()) {
    parameter.var.set_requires_grad(parameter.name.starts_with("fc."));
  }
}

void finetune(Communicator& ranks, char** arguments, int64_t side, int64_t epochs) {
  const data::DatasetPair photos = data::open_image_folders(
      arguments[2], {.train_crop = side, .val_resize = side * 8 / 7, .val_crop = side});
  Mt19937 rng(42);
  nn::ResNet network(nn::Init{rng}, 18, {.classes = photos.train->classes()});
  freeze_body(network);  // before the trainer, which checks this only once
  Trainer trainer(ranks,
                  network,
                  photos,
                  {.batch = 8,
                   .shards = 2,
                   .batch_norm_groups = 2,
                   .epochs = epochs,
                   .optimizer = {.lr = 0.01, .momentum = 0.9}});
  trainer.load_all_but_classifier(arguments[1]);
  const auto say = [&](const char* when) {
    const EvaluationReport found = trainer.evaluate();
    if (ranks.rank() == 0) std::printf("%s: %.2f %%\n", when, found.accuracy());
  };
  say("before");
  trainer.run([&](const StepReport& report) {
    if (report.ends_epoch) say("after an epoch");
    return true;
  });
  trainer.save(arguments[3]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::puts("usage: finetune WEIGHTS PHOTOS FILE [SIDE [EPOCHS]]"), 2;
  const int side = argc > 4 ? std::atoi(argv[4]) : 224;
  const int epochs = argc > 5 ? std::atoi(argv[5]) : 5;
  try {
    spawn(2, [&](Communicator& ranks) { finetune(ranks, argv, side, epochs); });
  } catch (const Error& error) {
    std::fputs(format_error(error).c_str(), stderr);
    return static_cast<int>(error.code());
  }
}
