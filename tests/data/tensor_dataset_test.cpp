#include "data/tensor_dataset.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/loader.h"

namespace lockstep::data::tensor_dataset_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor counting(const Shape& shape) {
  Tensor tensor = Tensor::empty(shape, Dtype::kF32);
  float next = 0;
  for (float& value : tensor.span<float>()) value = next++;
  return tensor;
}

TEST(TensorDataset, BatchesHaveItsFloatsAndTargets) {
  for (const int workers : {0, 2}) {
    const auto set = std::make_shared<TensorDataset>("rows", counting({4, 3}), counting({4, 2}));
    EXPECT_EQ(set->classes(), 0);
    Loader loader(
        set, evaluation_sequence({.dataset_size = 4, .chunk_images = 3}), {.workers = workers});
    const LoadedBatch first = loader.next();
    EXPECT_EQ(first.images.shape(), Shape({3, 3, 1, 1}));
    EXPECT_THAT(first.images.span<float>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_EQ(first.labels.shape(), Shape({3, 2}));
    const LoadedBatch last = loader.next();
    EXPECT_THAT(last.images.span<float>(), ElementsAre(9, 10, 11));
    EXPECT_THAT(last.labels.span<float>(), ElementsAre(6, 7));
  }
}

TEST(TensorDataset, TakesLabelsToo) {
  Tensor labels = Tensor::zeros({2}, Dtype::kI32);
  labels.data<int32_t>()[1] = 4;
  const TensorDataset set("images", counting({2, 2, 3, 5}), labels);
  EXPECT_EQ(set.classes(), 5);
  EXPECT_EQ(set.target_size(), 0);
  EXPECT_EQ(set.label(1), 4);
  EXPECT_EQ(set.image_shape(), (ImageShape{.channels = 2, .height = 3, .width = 5}));
}

TEST(TensorDataset, DigestFollowsInputsAndTargets) {
  const TensorDataset set("rows", counting({2, 3}), counting({2}));
  EXPECT_EQ(set.digest(), TensorDataset("others", counting({2, 3}), counting({2})).digest());
  EXPECT_NE(set.digest(), TensorDataset("rows", counting({2, 3}), counting({2, 2})).digest());
  EXPECT_NE(set.digest(), TensorDataset("rows", counting({2, 4}), counting({2})).digest());
}

TEST(TensorDataset, OtherShapesAndTypesAreRefused) {
  const auto make = [](const Tensor& inputs, const Tensor& targets) {
    return [=] { TensorDataset("rows", inputs, targets); };
  };
  EXPECT_THAT(make(counting({2, 3}), counting({3})),
              ThrowsMessage<ShapeError>(HasSubstr("inputs (2,3) and targets (3)")));
  EXPECT_THAT(make(counting({2}), counting({2})), ThrowsMessage<ShapeError>(HasSubstr("(2)")));
  EXPECT_THAT(make(counting({2, 3}), Tensor::zeros({2, 1}, Dtype::kI32)),
              ThrowsMessage<ShapeError>(HasSubstr("targets (2,1)")));
  EXPECT_THAT(make(Tensor::zeros({2, 3}, Dtype::kU8), counting({2})),
              ThrowsMessage<DtypeError>(HasSubstr("inputs of u8")));
}

}  // namespace
}  // namespace lockstep::data::tensor_dataset_test
