#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/safetensors.h"
#include "engine/state/state_tensors.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/checkpoint/export_weights.h"

namespace lockstep::trainers::pretrained_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::TinyRun;

FileTensors with_prefix(const FileTensors& tensors, const std::string& prefix = "module.") {
  FileTensors prefixed;
  for (const auto& [name, tensor] : tensors) prefixed[prefix + name] = tensor;
  return prefixed;
}

class Pretrained : public ::testing::Test {
 protected:
  // Loads `tensors` into another network. Returns the error, a note about a classifier that starts
  // fresh, or "loaded".
  std::string load(const FileTensors& tensors, Classifier classifier = Classifier::kMayStartFresh) {
    try {
      return load_pretrained("w.safetensors", tensors, target_.model, classifier)
          .fresh.value_or("loaded");
    } catch (const CheckpointError& error) {
      return format_error(error);
    }
  }

  const TempDir dir_;
  const TinyRun source_{1};
  TinyRun target_{2};
  FileTensors tensors_ = file_tensors(source_.model.state());
};

TEST_F(Pretrained, WithAndWithoutModuleInFrontOfTheNames) {
  EXPECT_EQ(load(tensors_), "loaded");
  EXPECT_EQ(state_digest(target_.model), state_digest(source_.model));
  TinyRun::fill(target_.model.state()[0].tensor, 99);
  ASSERT_NE(state_digest(target_.model), state_digest(source_.model));
  EXPECT_EQ(load(with_prefix(tensors_)), "loaded");
  EXPECT_EQ(state_digest(target_.model), state_digest(source_.model));
}

TEST_F(Pretrained, OnePrefixBeforeAllNamesIsLeftOut) {
  for (const char* prefix :
       {"_orig_mod.", "module._orig_mod.", "model.", "net.", "backbone.", "a.b."}) {
    TinyRun::fill(target_.model.state()[0].tensor, 99);
    FileTensors tensors = with_prefix(tensors_, prefix);
    tensors["n_averaged"] = Tensor::zeros({}, Dtype::kI64);
    const LoadedWeights loaded =
        load_pretrained("w.pt", tensors, target_.model, Classifier::kMustFit);
    EXPECT_EQ(loaded.prefix, prefix);
    EXPECT_EQ(state_digest(target_.model), state_digest(source_.model)) << prefix;
  }
}

TEST_F(Pretrained, TwoPrefixesThatFitAreRefused) {
  FileTensors tensors = with_prefix(tensors_, "model.");
  tensors.merge(with_prefix(tensors_, "model_ema."));
  EXPECT_THAT(load(tensors),
              ::testing::AllOf(HasSubstr("its names fit after 'model.' and after 'model_ema.'"),
                               HasSubstr("k.startswith('model.')")));
  FileTensors both = tensors_;
  both.merge(with_prefix(tensors_, "ema."));
  EXPECT_THAT(load(both), HasSubstr("ema.bn.bias is not expected"));
}

TEST_F(Pretrained, NamesOfTheFileAreShownBesideTheMissing) {
  FileTensors tensors;
  for (const auto& [name, tensor] : tensors_) tensors["enc_" + name] = tensor;
  EXPECT_THAT(load(tensors), HasSubstr("; the file has enc_bn.bias; enc_bn.num_batches_tracked; "));
}

TEST_F(Pretrained, CountersMayHaveAnyType) {
  Tensor i32 = Tensor::zeros({}, Dtype::kI32);
  *i32.data<int32_t>() = 7;
  Tensor u8 = Tensor::zeros({1}, Dtype::kU8);
  *u8.data<uint8_t>() = 7;
  Tensor f32 = Tensor::zeros({1}, Dtype::kF32);
  *f32.data<float>() = 7;
  Tensor f16 = Tensor::zeros({}, Dtype::kF16);
  f16.data<Half>()->bits = 0x4700;
  for (const Tensor& counter : {i32, u8, f32, f16}) {
    tensors_["bn.num_batches_tracked"] = counter;
    ASSERT_EQ(load(tensors_), "loaded") << name_of(counter.dtype());
    const FileTensors loaded = file_tensors(target_.model.state());
    EXPECT_EQ(*loaded.at("bn.num_batches_tracked").data<int64_t>(), 7) << name_of(counter.dtype());
  }
  for (const float value : {1e30F, -1e30F, std::numeric_limits<float>::quiet_NaN()}) {
    *f32.data<float>() = value;
    tensors_["bn.num_batches_tracked"] = f32;
    EXPECT_THAT(load(tensors_), HasSubstr("bn.num_batches_tracked is no integer of 64 bits"));
  }
  tensors_["bn.num_batches_tracked"] = Tensor::zeros({2}, Dtype::kI64);
  EXPECT_THAT(load(tensors_), HasSubstr("bn.num_batches_tracked has shape (2)"));
}

TEST_F(Pretrained, CountersMayBeAbsent) {
  tensors_.erase("bn.num_batches_tracked");
  EXPECT_EQ(load(tensors_), "loaded");
}

TEST_F(Pretrained, SixteenBitsAreWidened) {
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const Tensor narrow = Tensor::zeros({3}, dtype);
    tensors_["fc.bias"] = narrow;
    std::memset(tensors_["fc.bias"].bytes(), 0x3f, narrow.nbytes());
    ASSERT_EQ(load(tensors_), "loaded");
    Half half;
    BFloat16 brain;
    half.bits = brain.bits = 0x3f3f;
    const float want = dtype == Dtype::kF16 ? static_cast<float>(half) : static_cast<float>(brain);
    EXPECT_EQ(file_tensors(target_.model.state()).at("fc.bias").span<float>()[2], want);
  }
}

TEST_F(Pretrained, WhatDoesNotFitIsNamedAndChangesNothing) {
  const uint64_t before = state_digest(target_.model);
  FileTensors missing = tensors_;
  missing.erase("bn.running_var");
  EXPECT_THAT(load(missing),
              HasSubstr("does not fit the network\n  why: bn.running_var is missing"));
  FileTensors extra = tensors_;
  extra["layer4.weight"] = Tensor::zeros({1}, Dtype::kF32);
  EXPECT_THAT(load(extra), HasSubstr("layer4.weight is not expected"));
  FileTensors misshapen = tensors_;
  misshapen["conv.weight"] = Tensor::zeros({2, 1, 5, 5}, Dtype::kF32);
  EXPECT_THAT(load(misshapen), HasSubstr("conv.weight has shape (2,1,5,5), expected (2,1,3,3)"));
  FileTensors other = tensors_;
  other["fc.bias"] = Tensor::zeros({3}, Dtype::kI64);
  EXPECT_THAT(load(other), HasSubstr("fc.bias is i64, expected f32"));
  EXPECT_EQ(state_digest(target_.model), before);
}

TEST_F(Pretrained, AClassifierOfOtherClassesStartsFresh) {
  const TinyRun thousand(3, 1000);
  const Tensor fresh = file_tensors(target_.model.state()).at("fc.weight");
  EXPECT_EQ(load(with_prefix(file_tensors(thousand.model.state()), "model.")), "fc");
  const FileTensors loaded = file_tensors(target_.model.state());
  const FileTensors given = file_tensors(thousand.model.state());
  for (const auto& [name, tensor] : loaded) {
    const Tensor& want = name == "fc.weight" ? fresh : given.at(name);
    if (name == "fc.bias") continue;
    EXPECT_EQ(digest_of_row_major({{"", tensor}}), digest_of_row_major({{"", want}})) << name;
  }
}

TEST_F(Pretrained, ToEvaluateTheClassifierMustFit) {
  const TinyRun five(3, 5);
  EXPECT_THAT(load(file_tensors(five.model.state()), Classifier::kMustFit),
              ::testing::AllOf(HasSubstr("fc.weight has shape (5,32), expected (3,32)"),
                               HasSubstr("names of its 5 outputs")));
}

TEST_F(Pretrained, AHalfClassifierIsNoOtherClassifier) {
  tensors_["fc.weight"] = Tensor::zeros({5, 32}, Dtype::kF32);
  EXPECT_THAT(load(tensors_), HasSubstr("fc.weight has shape (5,32), expected (3,32)"));
}

TEST_F(Pretrained, AFileThatIsNotThereIsACheckpointError) {
  EXPECT_THROW(read_weights(dir_ / "no"), CheckpointError);
}

}  // namespace
}  // namespace lockstep::trainers::pretrained_test
