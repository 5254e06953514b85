// Erases a box of each image: it becomes 0, which is the mean where images are normalized.
//   images[n,:,y,x] = 0 for y in [top, top + height), x in [left, left + width) of boxes[n]
// Source: torchvision's RandomErasing with value 0. Spec: tests/reference/erase_boxes.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// In place. Shapes: boxes (N,4) i32: top, left, height, width; images (N,C,H,W) f32, f16 or bf16.
// What is outside of a box keeps its bits, NaN inside of it becomes 0. An empty box erases nothing.
// Errors: ShapeError, DtypeError, DeviceError. Requires: boxes within the image, which are not
// looked at before the kernels run.
using EraseBoxes = void(Stream& stream, const Shards& shards, const Tensor& boxes, Tensor& images);

LS_DECLARE_OP(EraseBoxes, erase_boxes)

}  // namespace lockstep::kernels
