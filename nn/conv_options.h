// Options of the convolutions that residual networks are built of.
#pragma once

#include <cstdint>

#include "nn/layers.h"

namespace lockstep::nn {

// 1x1, without bias.
inline Conv2dOptions conv1x1(int64_t in_channels, int64_t out_channels, int stride = 1) {
  return {.in_channels = in_channels,
          .out_channels = out_channels,
          .kernel = 1,
          .stride = stride,
          .bias = false};
}

// 3x3, padded by one pixel, without bias.
inline Conv2dOptions conv3x3(int64_t in_channels,
                             int64_t out_channels,
                             int stride = 1,
                             int groups = 1) {
  return {.in_channels = in_channels,
          .out_channels = out_channels,
          .kernel = 3,
          .stride = stride,
          .pad = 1,
          .bias = false,
          .groups = groups};
}

}  // namespace lockstep::nn
