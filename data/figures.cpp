#include "data/figures.h"

#include <array>

namespace lockstep::data {
namespace {

template <size_t kPoints, size_t kSteps>
struct Drawing {
  GlyphPoint points[kPoints];
  int8_t strokes[kSteps];

  constexpr Glyph glyph() const { return {points, strokes}; }
};
template <size_t kPoints, size_t kSteps>
constexpr Drawing<kPoints, kSteps> draw(const GlyphPoint (&points)[kPoints],
                                        const int8_t (&strokes)[kSteps]) {
  static_assert(kPoints <= kMaxGlyphSize && kSteps <= 2 * kMaxGlyphSize);
  Drawing<kPoints, kSteps> drawing{};
  for (size_t i = 0; i < kPoints; ++i) drawing.points[i] = points[i];
  for (size_t i = 0; i < kSteps; ++i) drawing.strokes[i] = strokes[i];
  return drawing;
}

constexpr int8_t kUp = kPenUp;

constexpr auto kZeroRound =
    draw({{0, -40}, {-16, -29}, {-22, 0}, {-16, 29}, {0, 40}, {16, 29}, {22, 0}, {16, -29}},
         {0, 1, 2, 3, 4, 5, 6, 7, 0, kUp});
constexpr auto kZeroOpen =
    draw({{8, -38}, {-10, -32}, {-19, 0}, {-12, 32}, {2, 40}, {16, 24}, {18, -12}, {2, -40}},
         {0, 1, 2, 3, 4, 5, 6, 7, kUp});
constexpr auto kOneBar = draw({{0, -40}, {0, 40}}, {0, 1, kUp});
constexpr auto kOneFlag = draw({{-14, -24}, {4, -40}, {4, 40}}, {0, 1, kUp, 1, 2, kUp});
constexpr auto kOneBase =
    draw({{-12, -26}, {2, -40}, {2, 40}, {-15, 40}, {18, 40}}, {0, 1, kUp, 1, 2, kUp, 3, 4, kUp});
constexpr auto kTwoPlain =
    draw({{-20, -24}, {-12, -37}, {4, -40}, {18, -30}, {16, -10}, {-2, 14}, {-21, 40}, {22, 40}},
         {0, 1, 2, 3, 4, 5, 6, kUp, 6, 7, kUp});
constexpr auto kTwoLoop = draw(
    {{-18, -30}, {0, -40}, {17, -28}, {12, -4}, {-8, 24}, {-20, 36}, {-16, 24}, {2, 34}, {22, 38}},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, kUp});
constexpr auto kThreeRound = draw(
    {{-18, -30}, {-4, -40}, {13, -34}, {15, -18}, {-4, -4}, {16, 8}, {18, 26}, {2, 40}, {-18, 31}},
    {0, 1, 2, 3, 4, kUp, 4, 5, 6, 7, 8, kUp});
constexpr auto kThreeFlat =
    draw({{-17, -40}, {17, -40}, {-3, -9}, {15, 1}, {18, 22}, {3, 40}, {-18, 32}},
         {0, 1, kUp, 1, 2, kUp, 2, 3, 4, 5, 6, kUp});
constexpr auto kFourClosed =
    draw({{9, -40}, {-22, 14}, {22, 14}, {9, 40}}, {0, 1, kUp, 1, 2, kUp, 0, 3, kUp});
constexpr auto kFourOpen =
    draw({{-15, -38}, {-20, 4}, {21, 4}, {13, -36}, {9, 40}}, {0, 1, kUp, 1, 2, kUp, 3, 4, kUp});
constexpr auto kFiveCorners =
    draw({{19, -40}, {-14, -40}, {-17, -6}, {2, -13}, {18, 2}, {17, 25}, {0, 40}, {-18, 32}},
         {0, 1, kUp, 1, 2, kUp, 2, 3, 4, 5, 6, 7, kUp});
constexpr auto kFiveRound =
    draw({{18, -38}, {-6, -37}, {-15, -12}, {4, -9}, {17, 8}, {12, 31}, {-6, 40}, {-18, 34}},
         {0, 1, 2, 3, 4, 5, 6, 7, kUp});
constexpr auto kSixCurved = draw(
    {{12, -40}, {-8, -24}, {-19, 8}, {-13, 33}, {2, 40}, {18, 27}, {13, 6}, {-3, 1}, {-17, 16}},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, kUp});
constexpr auto kSixStraight =
    draw({{6, -40}, {-10, -8}, {-18, 20}, {-4, 40}, {14, 32}, {15, 14}, {0, 4}, {-16, 18}},
         {0, 1, 2, 3, 4, 5, 6, 7, kUp});
constexpr auto kSevenPlain = draw({{-20, -40}, {20, -40}, {-4, 40}}, {0, 1, kUp, 1, 2, kUp});
constexpr auto kSevenBar =
    draw({{-20, -38}, {20, -38}, {-4, 40}, {-10, 0}, {18, 0}}, {0, 1, kUp, 1, 2, kUp, 3, 4, kUp});
constexpr auto kSevenCurved = draw({{-21, -28}, {-18, -39}, {20, -39}, {4, -4}, {-4, 40}},
                                   {0, 1, kUp, 1, 2, kUp, 2, 3, 4, kUp});
constexpr auto kEightRound = draw({{0, -4},
                                   {-15, -16},
                                   {-12, -34},
                                   {0, -40},
                                   {12, -34},
                                   {15, -16},
                                   {-18, 11},
                                   {-16, 31},
                                   {0, 40},
                                   {16, 31},
                                   {18, 11}},
                                  {0, 1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 0, kUp});
constexpr auto kEightCrossed = draw({{15, -32},
                                     {0, -40},
                                     {-14, -29},
                                     {-8, -12},
                                     {10, 6},
                                     {16, 26},
                                     {0, 40},
                                     {-16, 26},
                                     {-8, 6},
                                     {10, -14}},
                                    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, kUp});
constexpr auto kNineStraight = draw(
    {{16, -20}, {6, -3}, {-10, -5}, {-18, -21}, {-9, -37}, {5, -40}, {16, -29}, {14, 12}, {8, 40}},
    {0, 1, 2, 3, 4, 5, 6, 0, 7, 8, kUp});
constexpr auto kNineHooked = draw({{16, -22},
                                   {2, -4},
                                   {-15, -12},
                                   {-14, -32},
                                   {2, -40},
                                   {17, -32},
                                   {18, 4},
                                   {10, 34},
                                   {-4, 40},
                                   {-16, 33}},
                                  {0, 1, 2, 3, 4, 5, 0, 6, 7, 8, 9, kUp});

constexpr std::array kZero = {kZeroRound.glyph(), kZeroOpen.glyph()};
constexpr std::array kOne = {kOneBar.glyph(), kOneFlag.glyph(), kOneBase.glyph()};
constexpr std::array kTwo = {kTwoPlain.glyph(), kTwoLoop.glyph()};
constexpr std::array kThree = {kThreeRound.glyph(), kThreeFlat.glyph()};
constexpr std::array kFour = {kFourClosed.glyph(), kFourOpen.glyph()};
constexpr std::array kFive = {kFiveCorners.glyph(), kFiveRound.glyph()};
constexpr std::array kSix = {kSixCurved.glyph(), kSixStraight.glyph()};
constexpr std::array kSeven = {kSevenPlain.glyph(), kSevenBar.glyph(), kSevenCurved.glyph()};
constexpr std::array kEight = {kEightRound.glyph(), kEightCrossed.glyph()};
constexpr std::array kNine = {kNineStraight.glyph(), kNineHooked.glyph()};
constexpr std::array<std::span<const Glyph>, 10> kDigits = {
    kZero, kOne, kTwo, kThree, kFour, kFive, kSix, kSeven, kEight, kNine};

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

std::span<const Glyph> digit_glyphs(int32_t digit) {
  return kDigits[static_cast<size_t>(digit)];
}

std::span<const Contour> shape_outline(int32_t shape) {
  return kOutlines[static_cast<size_t>(shape)];
}

}  // namespace lockstep::data
