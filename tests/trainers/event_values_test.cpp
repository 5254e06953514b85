#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/codecs/decode_image.h"
#include "tests/support/event_reader.h"
#include "trainers/report/event_file.h"
#include "trainers/report/run_events.h"

namespace lockstep::trainers::event_values_test {
namespace {

using ::testing::ElementsAre;
using testing::field;
using ::testing::HasSubstr;
using testing::Message;
using testing::number_in;
using testing::parse_message;
using testing::whole_field;

std::vector<double> reals(const std::string& packed) {
  std::vector<double> numbers(packed.size() / sizeof(double));
  std::memcpy(numbers.data(), packed.data(), packed.size());
  return numbers;
}

// The expected bins are those of torch.utils.tensorboard.summary.make_histogram for these values.
TEST(EventValues, HistogramsHaveTorchsBins) {
  const std::vector<float> values = {-1.5F, 0, NAN, 0, 0.25F, INFINITY};
  const Message histogram = parse_message(field(parse_message(histogram_value("w", values)), 5));
  const auto real = [&](uint64_t number) { return number_in<double>(field(histogram, number)); };
  EXPECT_EQ(real(1), -1.5);
  EXPECT_EQ(real(2), 0.25);
  EXPECT_EQ(real(3), 4);
  EXPECT_EQ(real(4), -1.25);
  EXPECT_EQ(real(5), 2.3125);
  const std::vector<double> limits = reals(field(histogram, 6));
  const std::vector<double> counts = reals(field(histogram, 7));
  ASSERT_EQ(limits.size(), 574U);
  ASSERT_EQ(counts.size(), 574U);
  EXPECT_THAT(std::vector(limits.begin(), limits.begin() + 3),
              ElementsAre(-1.624957930213695, -1.47723448201245, -1.3429404381931362));
  EXPECT_THAT(std::vector(counts.begin(), counts.begin() + 3), ElementsAre(0, 1, 0));
  EXPECT_EQ(limits[572], 0.24153964213356663);
  EXPECT_EQ(limits[573], 0.2656936063469233);
  EXPECT_EQ(counts[573], 1);
}

TEST(EventValues, ValuesOnAnEdgeAndBeyondTheLastCount) {
  const std::vector<float> zeros = {0, 0};
  const Message histogram = parse_message(field(parse_message(histogram_value("w", zeros)), 5));
  EXPECT_THAT(reals(field(histogram, 6)), ElementsAre(0, 1e-12));
  EXPECT_THAT(reals(field(histogram, 7)), ElementsAre(0, 2));
  const std::vector<float> huge = {3e38F};
  const Message of_huge = parse_message(field(parse_message(histogram_value("w", huge)), 5));
  EXPECT_THAT(reals(field(of_huge, 7)), ElementsAre(0, 1));
  EXPECT_EQ(histogram_value("w", std::vector<float>{NAN}), "");
}

TEST(EventValues, ImagesArePngsThatADecoderReads) {
  for (const int64_t channels : {1, 3}) {
    Picture picture{.height = 3, .width = 5, .channels = channels};
    for (int64_t i = 0; i < 15 * channels; ++i) picture.pixels += static_cast<char>(17 * i);
    const Message value = parse_message(image_value("train/images", picture));
    EXPECT_EQ(field(value, 1), "train/images");
    const Message image = parse_message(field(value, 4));
    EXPECT_EQ(whole_field(image, 1), 3);
    EXPECT_EQ(whole_field(image, 2), 5);
    EXPECT_EQ(whole_field(image, 3), channels);
    data::Image decoded;
    const std::string png = field(image, 4);
    data::decode_image(
        std::as_bytes(std::span(png)),
        [](const data::ImageSize& size) {
          return Region{.top = 0, .left = 0, .height = size.height, .width = size.width};
        },
        decoded);
    for (size_t i = 0; i < 45; ++i) {
      const size_t from = channels == 3 ? i : i / 3;
      ASSERT_EQ(decoded.pixels[i], static_cast<uint8_t>(picture.pixels[from])) << i;
    }
  }
}

TEST(EventValues, TextsAreTensorsOfOneString) {
  const Message value = parse_message(text_value("run/command", "`train`"));
  EXPECT_EQ(field(value, 1), "run/command/text_summary");
  const Message tensor = parse_message(field(value, 8));
  EXPECT_EQ(whole_field(tensor, 1), 7);
  EXPECT_EQ(field(tensor, 8), "`train`");
  EXPECT_EQ(field(parse_message(field(parse_message(field(value, 9)), 1)), 1), "text");
}

TEST(EventValues, HParamsHaveTheTypesOfTheirFlags) {
  RunRecord record;
  record.argv = {"train_convnet", "--lr", "0.1"};
  record.flags = {{"lr", "0.1", "command line"},
                  {"momentum", "0.9", "default"},
                  {"sync-bn", "false", "default"},
                  {"arch", "convnet", "default"},
                  {"data", "/home/me", "command line"},
                  {"output-dir", "a|b\x1b[1m`<script>\xff", "command line"}};
  const EventOpening opening = event_opening(record);
  std::map<std::string, std::variant<bool, double, std::string>> columns;
  for (const auto& [name, value] : opening.hparams) columns[name] = value;
  EXPECT_THAT(columns,
              ElementsAre(std::pair("arch", std::variant<bool, double, std::string>("convnet")),
                          std::pair("lr", std::variant<bool, double, std::string>(0.1)),
                          std::pair("sync-bn", std::variant<bool, double, std::string>(false))));
  ASSERT_EQ(opening.texts.size(), 2U);
  EXPECT_EQ(opening.texts[0].markdown, "`train_convnet --lr 0.1`");
  EXPECT_THAT(opening.texts[1].markdown,
              HasSubstr("| output-dir | `a\\|b\\x1b[1m'<script>\\xff` | command line |\n"));

  const Message value = parse_message(session_start_value(opening.hparams, {}));
  const Message plugin = parse_message(field(parse_message(field(value, 9)), 1));
  EXPECT_EQ(field(plugin, 1), "hparams");
  const Message session = parse_message(field(parse_message(field(plugin, 2)), 3));
  EXPECT_EQ(session.count(1), 3U);
  const Message rate = parse_message(session.find(1)->second);
  EXPECT_EQ(field(rate, 1), "lr");
  EXPECT_EQ(number_in<double>(field(parse_message(field(rate, 2)), 2)), 0.1);
}

}  // namespace
}  // namespace lockstep::trainers::event_values_test
