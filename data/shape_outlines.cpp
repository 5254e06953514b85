#include "data/shape_outlines.h"

#include <array>

namespace lockstep::data {
namespace {

constexpr ShapePoint kDisc[] = {
    {58, 0},    {56, 15},   {50, 29},  {41, 41},  {29, 50},  {15, 56},   {0, 58},    {-15, 56},
    {-29, 50},  {-41, 41},  {-50, 29}, {-56, 15}, {-58, 0},  {-56, -15}, {-50, -29}, {-41, -41},
    {-29, -50}, {-15, -56}, {0, -58},  {15, -56}, {29, -50}, {41, -41},  {50, -29},  {56, -15}};
constexpr ShapePoint kRingOuter[] = {
    {60, 0},    {58, 16},   {52, 30},  {42, 42},  {30, 52},  {16, 58},   {0, 60},    {-16, 58},
    {-30, 52},  {-42, 42},  {-52, 30}, {-58, 16}, {-60, 0},  {-58, -16}, {-52, -30}, {-42, -42},
    {-30, -52}, {-16, -58}, {0, -60},  {16, -58}, {30, -52}, {42, -42},  {52, -30},  {58, -16}};
constexpr ShapePoint kRingInner[] = {{34, 0},  {32, -11},  {28, -20},  {20, -28},  {11, -32},
                                     {0, -34}, {-11, -32}, {-20, -28}, {-28, -20}, {-32, -11},
                                     {-34, 0}, {-32, 11},  {-28, 20},  {-20, 28},  {-11, 32},
                                     {0, 34},  {11, 32},   {20, 28},   {28, 20},   {32, 11}};
constexpr ShapePoint kTriangle[] = {{0, -64}, {60, 42}, {-60, 42}};
constexpr ShapePoint kSquare[] = {{-48, -48}, {48, -48}, {48, 48}, {-48, 48}};
constexpr ShapePoint kStar[] = {{0, -64},
                                {15, -21},
                                {61, -20},
                                {25, 8},
                                {38, 52},
                                {0, 26},
                                {-38, 52},
                                {-25, 8},
                                {-61, -20},
                                {-15, -21}};
constexpr ShapePoint kCross[] = {{-18, -60},
                                 {18, -60},
                                 {18, -18},
                                 {60, -18},
                                 {60, 18},
                                 {18, 18},
                                 {18, 60},
                                 {-18, 60},
                                 {-18, 18},
                                 {-60, 18},
                                 {-60, -18},
                                 {-18, -18}};
constexpr ShapePoint kCrescent[] = {
    {33, 50},   {19, 57},  {3, 60},    {-13, 59},  {-28, 53},  {-41, 43},  {-51, 31},
    {-58, 16},  {-60, 0},  {-58, -16}, {-51, -31}, {-41, -43}, {-28, -53}, {-13, -59},
    {3, -60},   {19, -57}, {33, -50},  {20, -49},  {8, -44},   {-3, -36},  {-11, -25},
    {-16, -13}, {-18, 0},  {-16, 13},  {-11, 25},  {-3, 36},   {8, 44},    {20, 49}};
constexpr ShapePoint kHeart[] = {{0, 60},
                                 {-52, 4},
                                 {-58, -16},
                                 {-54, -36},
                                 {-40, -50},
                                 {-20, -50},
                                 {-6, -40},
                                 {0, -26},
                                 {6, -40},
                                 {20, -50},
                                 {40, -50},
                                 {54, -36},
                                 {58, -16},
                                 {52, 4}};
constexpr ShapePoint kArrow[] = {
    {0, -62}, {46, -8}, {17, -8}, {17, 60}, {-17, 60}, {-17, -8}, {-46, -8}};
constexpr ShapePoint kHourglass[] = {{-48, -58}, {48, -58}, {7, 0}, {48, 58}, {-48, 58}, {-7, 0}};

constexpr Contour kDiscs[] = {kDisc};
constexpr Contour kTriangles[] = {kTriangle};
constexpr Contour kSquares[] = {kSquare};
constexpr Contour kStars[] = {kStar};
constexpr Contour kCrosses[] = {kCross};
constexpr Contour kRings[] = {kRingOuter, kRingInner};
constexpr Contour kCrescents[] = {kCrescent};
constexpr Contour kHearts[] = {kHeart};
constexpr Contour kArrows[] = {kArrow};
constexpr Contour kHourglasses[] = {kHourglass};

constexpr std::array<std::span<const Contour>, 10> kOutlines = {kDiscs,
                                                                kTriangles,
                                                                kSquares,
                                                                kStars,
                                                                kCrosses,
                                                                kRings,
                                                                kCrescents,
                                                                kHearts,
                                                                kArrows,
                                                                kHourglasses};

}  // namespace

std::span<const Contour> shape_outline(int32_t shape) {
  return kOutlines[static_cast<size_t>(shape)];
}

}  // namespace lockstep::data
