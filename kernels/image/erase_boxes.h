// Erases a box of each image, by setting it to 0, the mean of normalized images.
//   images[n,:,y,x] = 0 for y in [top, top + height), x in [left, left + width) of boxes[n]
// Source: torchvision's RandomErasing with value 0. Spec: tests/reference/erase_boxes.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// In place. Shapes: boxes (N,4) i32: top, left, height, width; images (N,C,H,W) f32, f16 or bf16.
// Values outside of a box keep their bits; NaN inside of it becomes 0. An empty box erases nothing.
// Errors: ShapeError, DtypeError, DeviceError. Requires: boxes within the image; this is not
// checked.
using EraseBoxes = void(Stream& stream, const Shards& shards, const Tensor& boxes, Tensor& images);

LS_DECLARE_OP(EraseBoxes, erase_boxes)

}  // namespace lockstep::kernels
