#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <clocale>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace st {
namespace {

TEST(Text, WritesNumbersAsPrintfDoesInTheCLocale) {
  ASSERT_STREQ(std::setlocale(LC_ALL, nullptr), "C");
  using Limits = std::numeric_limits<double>;
  for (const double number : {0.0, -0.0, 1.0, 0.5, -0.1, 1.0 / 3, 123456789.0, 1234567890.0, 1e-4, 1e-5, 1e300, 5e-324, Limits::max(),
                              Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    std::array<char, 40> wanted;
    std::snprintf(wanted.data(), wanted.size(), "%.9g", number);
    EXPECT_EQ(text(number), wanted.data());
  }
}

TEST(Text, WritesBytesForPeople) {
  EXPECT_EQ(text_of_bytes(0), "0 B");
  EXPECT_EQ(text_of_bytes(1023), "1023 B");
  EXPECT_EQ(text_of_bytes(1536), "1.50 KiB");
  EXPECT_EQ(text_of_bytes(int64_t{3} << 30), "3.00 GiB");
  EXPECT_EQ(text_of_bytes(INT64_MAX), "8388608.00 TiB");
}

TEST(Text, FallsIntoWordsAndLines) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of(""), Words{});
  EXPECT_EQ(words_of(" \t\n"), Words{});
  EXPECT_EQ(words_of("150000 100000\n"), (Words{"150000", "100000"}));
  EXPECT_EQ(words_of("  a\tb  c"), (Words{"a", "b", "c"}));
  using Lines = std::vector<std::string_view>;
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("one\n\ntwo"), (Lines{"one", "", "two"}));
  EXPECT_EQ(lines_of("one\n"), Lines{"one"});
}

TEST(Text, KnowsWhichNameWasMeant) {
  const std::vector<std::string> keys = {"lr", "lr_steps", "weight_decay_scale", "accumulate", "beta1", "clip", "axis"};
  for (const auto& [word, meant] : std::vector<std::pair<std::string, std::string>>{{"acumulate", "accumulate"},
                                                                                    {"LR", "lr"},
                                                                                    {"lr-steps", "lr_steps"},
                                                                                    {"weight_decay", "weight_decay_scale"},
                                                                                    {"adam_beta1", "beta1"},
                                                                                    {"learning_rate", "lr"},
                                                                                    {"Learning-Rate", "lr"},
                                                                                    {"max_grad_norm", "clip"},
                                                                                    {"dim", "axis"},
                                                                                    {"batch_size", ""},
                                                                                    {"nothing_like_it", ""}})
    EXPECT_EQ(nearest(word, keys), meant) << word;
  EXPECT_EQ(way_out("lrr", keys, "there are many"), "; did you mean \"lr\"?");
  EXPECT_EQ(way_out("nothing_like_it", keys, text("there are ", listed(std::span(keys).first(2)))), "; there are lr, lr_steps");
}

TEST(Text, BeginsWithAWholeNumberOrNot) {
  EXPECT_EQ(whole_number("32K\n", 7), 32);
  EXPECT_EQ(whole_number("-5 kB", 7), -5);
  EXPECT_EQ(whole_number("max", 7), 7);
  EXPECT_EQ(whole_number("", 7), 7);
  EXPECT_EQ(whole_number("9223372036854775807", 7), INT64_MAX);
  EXPECT_EQ(whole_number("9223372036854775808", 7), 7);
}

}  // namespace
}  // namespace st
