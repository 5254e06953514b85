#include "data/torch_file/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/state/state_tensors.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/checkpoint/resume.h"

namespace lockstep::trainers::torch_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::TinyRun;
using testing::write_text;

// A file that PyTorch wrote.
fs::path golden(const std::string& name) {
  return testing::golden_folder() / "torch_files" / name;
}

std::string refusal(const fs::path& file) {
  try {
    data::read_torch_file(file);
  } catch (const CheckpointError& error) {
    return format_error(error);
  }
  return "read";
}

template <class T>
std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values;
  for (const T value : tensor.span<T>()) values.push_back(static_cast<float>(value));
  return values;
}

// As in tools/golden/torch_files.py, tensor k of the network's state holds k + i/64.
void expect_tiny_net(FileTensors tensors) {
  TinyRun run{1};
  EXPECT_EQ(load_pretrained("file", std::move(tensors), run.model, Classifier::kMustFit).fresh,
            std::nullopt);
  const FileTensors loaded = file_tensors(run.model.state());
  int64_t k = 0;
  for (const nn::StateEntry& entry : run.model.state()) {
    const Tensor& tensor = loaded.at(entry.name);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      if (tensor.dtype() == Dtype::kI64) {
        EXPECT_EQ(tensor.data<int64_t>()[i], k) << entry.name;
      } else {
        EXPECT_EQ(tensor.data<float>()[i], static_cast<float>(k) + static_cast<float>(i) / 64)
            << entry.name << " at " << i;
      }
    }
    ++k;
  }
}

TEST(TorchFile, ReadsAStateDict) {
  ASSERT_TRUE(data::is_torch_file(golden("state_dict.pt")));
  const Safetensors content = data::read_torch_file(golden("state_dict.pt"));
  EXPECT_EQ(content.tensors.size(), 9U);
  EXPECT_TRUE(content.metadata.empty());
  expect_tiny_net(content.tensors);
}

TEST(TorchFile, ReadsNestedOnesWithModuleInFront) {
  for (const char* file : {"checkpoint.pth.tar", "ddp_checkpoint.pt"}) {
    const Safetensors content = data::read_torch_file(golden(file));
    EXPECT_TRUE(content.tensors.contains("module.conv.weight")) << file;
    expect_tiny_net(content.tensors);
  }
}

TEST(TorchFile, ReadsStridedTensorsAndOtherTypes) {
  const FileTensors tensors = data::read_torch_file(golden("types.pt")).tensors;
  EXPECT_EQ(tensors.at("transposed").shape(), Shape({3, 2}));
  EXPECT_EQ(floats<float>(tensors.at("transposed")), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(floats<float>(tensors.at("column")), (std::vector<float>{1, 4}));
  EXPECT_EQ(floats<float>(tensors.at("row")), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(floats<Half>(tensors.at("half")), (std::vector<float>{0.5, -2}));
  EXPECT_EQ(floats<BFloat16>(tensors.at("bfloat16")), (std::vector<float>{0.5, -2}));
  EXPECT_EQ(tensors.at("scalar").shape(), Shape());
  EXPECT_EQ(*tensors.at("scalar").data<int64_t>(), int64_t{1} << 40);
  EXPECT_EQ(*tensors.at("int").data<int32_t>(), -7);
  EXPECT_EQ(*tensors.at("byte").data<uint8_t>(), 200);
  EXPECT_EQ(tensors.at("empty").shape(), Shape({0, 3}));
  EXPECT_EQ(floats<float>(tensors.at("parameter")), (std::vector<float>{1.5}));
}

TEST(TorchFile, AnExpandedTensorHasItsElementManyTimes) {
  const Tensor tensor = data::read_torch_file(golden("expanded.pt")).tensors.at("fc.weight");
  EXPECT_EQ(floats<float>(tensor), std::vector<float>(1000, 0.F));
}

TEST(TorchFile, WhatIsNotReadNamesTheWay) {
  EXPECT_THAT(refusal(golden("double.pt")),
              AllOf(HasSubstr("'fc.weight' has a DoubleStorage"), HasSubstr("model.float()")));
  EXPECT_THAT(refusal(golden("tensor.pt")), HasSubstr("it holds a tensor, not a state_dict"));
  EXPECT_THAT(refusal(golden("module.ckpt")),
              AllOf(HasSubstr("it holds a 'torch.nn.modules.linear.Linear'"),
                    HasSubstr("no code is run"),
                    HasSubstr("try: torch.save(model.state_dict()")));
  EXPECT_THAT(refusal(golden("before_1_6.pth")),
              AllOf(HasSubstr("PyTorch before 1.6"), HasSubstr("torch.save(torch.load(FILE)")));
}

TEST(TorchFile, TarArchivesAndBarePicklesAreNamed) {
  const TempDir dir;
  write_text(dir / "old.pth", std::string(257, '\0') + "ustar" + std::string(250, '\0'));
  EXPECT_THAT(refusal(dir / "old.pth"), HasSubstr("it is a tar archive, as PyTorch before 0.1.10"));
  write_text(dir / "bare.pkl", "\x80\x04\x95zzzzzzzzzzzz.");
  EXPECT_TRUE(data::is_torch_file(dir / "bare.pkl"));
  EXPECT_THAT(refusal(dir / "bare.pkl"), HasSubstr("it is a bare pickle"));
  write_text(dir / "text", "no weights");
  EXPECT_FALSE(data::is_torch_file(dir / "text"));
  EXPECT_FALSE(data::is_torch_file(dir / "absent"));
}

// The fifth tutorial's saved_model.ckpt would execute code of its class, and --resume needs the
// state of a run.
TEST(TorchFile, NoRunIsResumedFromOne) {
  std::vector<std::string> notes;
  const std::string file = golden("checkpoint.pth.tar").string();
  try {
    find_resume_point(file, "", notes);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(format_error(error),
                AllOf(HasSubstr("it holds no state of a run"), HasSubstr("--pretrained " + file)));
  }
}

TEST(TorchFile, WhatIsWrittenIsReadBack) {
  const TempDir dir;
  const TinyRun run{3};
  const Safetensors content{.tensors = file_tensors(run.model.state()),
                            .metadata = {{"arch", "tiny"}, {"odd", "\xff\""}}};
  for (const bool with_scaler : {false, true}) {
    const auto scaler =
        with_scaler ? std::optional(data::ScalerState{{"scale", 65536.0}, {"n", int64_t{3}}})
                    : std::nullopt;
    data::write_torch_file(dir / "w.pt", content, scaler);
    const Safetensors back = data::read_torch_file(dir / "w.pt");
    EXPECT_EQ(digest_of_row_major(back.tensors), digest_of_row_major(content.tensors));
    EXPECT_EQ(back.metadata.at("arch"), "tiny");
    EXPECT_EQ(back.metadata.at("odd"), "\xef\xbf\xbd\"");
  }
}

TEST(TorchFile, TheSameContentGivesTheSameBytes) {
  const TempDir dir;
  const Safetensors content{.tensors = {{"w", Tensor::zeros({2}, Dtype::kF32)}}, .metadata = {}};
  data::write_torch_file(dir / "a.pt", content);
  data::write_torch_file(dir / "b.pt", content);
  EXPECT_EQ(testing::read_text(dir / "a.pt"), testing::read_text(dir / "b.pt"));
}

}  // namespace
}  // namespace lockstep::trainers::torch_file_test
