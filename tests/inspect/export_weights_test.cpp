#include "inspect/weights/export_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/state/state_tensors.h"
#include "inspect/weights/export_weights.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"

namespace lockstep::trainers::export_weights_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ExportWeights : public ::testing::Test {
 protected:
  ExportWeights() { write_safetensors(from_, content_); }

  std::string refusal(const fs::path& from, const fs::path& to, const std::string& prefix = "") {
    try {
      export_weights(from, to, prefix);
    } catch (const Error& error) {
      return format_error(error);
    }
    return "exported";
  }

  const testing::TempDir dir_;
  const fs::path from_ = dir_ / "best.safetensors";
  const testing::TinyRun run_{1};
  Safetensors content_{
      .tensors = file_tensors(run_.model.state()),
      .metadata = {{"arch", "tiny"},
                   {"digest", "of other bytes"},
                   {"grad_scaler",
                    R"({"scale":65536.0,"growth_factor":2,"backoff_factor":0.5,)"
                    R"("growth_interval":2000,"_growth_tracker":3,"skipped":9})"}}};
};

TEST_F(ExportWeights, KeepsNamesShapesAndBits) {
  for (const char* file : {"w.pt", "w.pth", "w.pth.tar", "w.safetensors"}) {
    const fs::path to = dir_ / file;
    EXPECT_THAT(export_weights(from_, to, ""), HasSubstr(": 9 tensors\nin Python: ")) << file;
    EXPECT_EQ(digest_of_row_major(read_weights(to).tensors), digest_of_row_major(content_.tensors));
  }
  EXPECT_EQ(testing::read_text(dir_ / "w.pt").substr(0, 2), "PK");
}

TEST_F(ExportWeights, PutsThePrefixOnce) {
  export_weights(from_, dir_ / "a.pt", "module.");
  export_weights(dir_ / "a.pt", dir_ / "b.pt", "module.");
  export_weights(dir_ / "b.pt", dir_ / "c.safetensors", "");
  for (const char* file : {"a.pt", "b.pt"}) {
    const FileTensors tensors = read_weights(dir_ / file).tensors;
    EXPECT_EQ(tensors.size(), 9U);
    EXPECT_TRUE(tensors.contains("module.conv.weight")) << file;
  }
  EXPECT_EQ(digest_of_row_major(read_weights(dir_ / "c.safetensors").tensors),
            digest_of_row_major(content_.tensors));
}

TEST_F(ExportWeights, WhatWrappersPutBeforeTheNamesIsLeftOut) {
  for (const std::string prefix : {"_orig_mod.", "module._orig_mod.", "_orig_mod.module."}) {
    Safetensors wrapped;
    for (const auto& [name, tensor] : content_.tensors) wrapped.tensors[prefix + name] = tensor;
    wrapped.tensors["n_averaged"] = Tensor::zeros({}, Dtype::kI64);
    write_safetensors(dir_ / "wrapped.safetensors", wrapped);
    const fs::path to = dir_ / (prefix + "pt");
    export_weights(dir_ / "wrapped.safetensors", to, "");
    EXPECT_EQ(digest_of_row_major(read_weights(to).tensors), digest_of_row_major(content_.tensors))
        << prefix;
  }
}

TEST_F(ExportWeights, TheScalersStateAndTheRecordGoAlong) {
  const std::string said = export_weights(from_, dir_ / "w.pt", "");
  EXPECT_THAT(said, HasSubstr("['model'], and ['scaler'] for GradScaler"));
  const std::string bytes = testing::read_text(dir_ / "w.pt");
  // 65536 as a double, 3 as an integer
  EXPECT_THAT(bytes, HasSubstr(std::string("scaleG\x40\xf0\0\0\0\0\0\0", 14)));
  EXPECT_THAT(bytes, HasSubstr(std::string("_growth_trackerJ\x03\0\0\0", 20)));
  EXPECT_THAT(bytes, HasSubstr("backoff_factor"));
  EXPECT_THAT(bytes.substr(0, bytes.find("lockstep.json")), Not(HasSubstr("skipped")));
  const auto metadata = read_weights(dir_ / "w.pt").metadata;
  EXPECT_EQ(metadata.at("arch"), "tiny");
  EXPECT_FALSE(metadata.contains("digest"));
  content_.metadata.erase("grad_scaler");
  write_safetensors(from_, content_);
  EXPECT_THAT(export_weights(from_, dir_ / "v.pt", ""), HasSubstr("v.pt')\n"));
}

TEST_F(ExportWeights, ReplacesNoFile) {
  testing::write_text(dir_ / "w.pt", "mine");
  EXPECT_THAT(refusal(from_, dir_ / "w.pt"), HasSubstr("an export replaces no file"));
  EXPECT_EQ(testing::read_text(dir_ / "w.pt"), "mine");
}

TEST_F(ExportWeights, WhatCannotBeExportedIsRefused) {
  EXPECT_THAT(refusal(from_, dir_ / "w.onnx"), HasSubstr("OUT.pt or OUT.pth"));
  EXPECT_THAT(refusal(from_, dir_ / "w.pt", "a b "), HasSubstr("'a b bn.bias' is not a name"));
  EXPECT_THAT(refusal(dir_ / "x.state.safetensors", dir_ / "w.pt"), HasSubstr("optimizer's state"));
  EXPECT_THAT(refusal(dir_ / "absent", dir_ / "w.pt"), HasSubstr("cannot read"));
  EXPECT_THAT(refusal(from_, dir_ / (std::string(300, 'a') + ".pt")), HasSubstr("cannot write"));
  content_.metadata["grad_scaler"] = "{";
  write_safetensors(from_, content_);
  EXPECT_THAT(refusal(from_, dir_ / "w.pt"), HasSubstr("'grad_scaler' is damaged"));
  EXPECT_FALSE(fs::exists(dir_ / "w.pt"));
}

TEST(ReadWeights, AFileThatIsNotThereIsACheckpointError) {
  EXPECT_THROW(read_weights("no"), CheckpointError);
}

}  // namespace
}  // namespace lockstep::trainers::export_weights_test
