#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "base/json_line.h"
#include "base/log.h"
#include "base/utf8.h"
#include "thrown_error.h"

namespace st {
namespace {

std::string refusal_of(std::string_view text) {
  const Error error = error_of([&] { parse_json(text, "recipe.json"); });
  if (error.code() == Code::ok) return "";
  EXPECT_EQ(error.code(), Code::invalid_argument);
  return error.message();
}

TEST(Json, KeepsTheOrderOfKeys) {
  const Json json = parse_json(R"({"zero":1,"accumulate":2})", "recipe");
  EXPECT_EQ(json.members().front().first, "zero");
  EXPECT_EQ(json.dump(), R"({"zero":1,"accumulate":2})");
}

TEST(Json, ReadsEveryKindAndWritesItBack) {
  const std::string text = R"({"a":[null,true,-3,18446744073709551615,1.0,1e-10,"\"\u0001"],"b":{"c":[]},"d":{}})";
  const Json json = parse_json(text, "recipe");
  EXPECT_EQ(json.dump(), text);
  const auto& list = json.find("a")->list();
  EXPECT_TRUE(list[1].boolean());
  EXPECT_EQ(list[2].whole(), -3);
  EXPECT_TRUE(list[3].is(Json::Kind::large));
  EXPECT_EQ(list[3].number(), 0x1p64);
  EXPECT_EQ(list[5].number(), 1e-10);
  EXPECT_EQ(list[6].text(), "\"\x01");
  EXPECT_EQ(json.find("e"), nullptr);
}

TEST(Json, NamesThePlaceOfAMistake) {
  const std::string message = refusal_of("{\n  \"steps\": 3,\n  \"lr\": ,\n}");
  EXPECT_TRUE(message.starts_with("recipe.json: line 3, column 9: ")) << message;
  EXPECT_TRUE(refusal_of("").starts_with("recipe.json: line 1, column 1: ")) << refusal_of("");
}

TEST(Json, RefusesWhatWouldLoseSomething) {
  EXPECT_NE(refusal_of(R"({"a":{"lr":1},"lr":1,"lr":2})").find("\"lr\" is given twice"), std::string::npos);
  EXPECT_EQ(refusal_of(R"({"a":{"lr":1},"b":{"lr":1},"lr":2})"), "");
  EXPECT_NE(refusal_of("{\"a\":1e999}"), "");
  EXPECT_NE(refusal_of("{\"a\":\"\xff\"}"), "");
}

TEST(Json, OfSettingsHasEveryNumberThatALanguageWrites) {
  const std::string text =
      R"({"a":["NaN\"", NaN, -inf , 1],"b":Infinity,"c":1e400,"d":-1E+999,"e":1e-400,"f":[null,true,nan],"g":18446744073709551616})";
  const Json json = parse_settings(text, "recipe");
  EXPECT_EQ(json.dump(),
            R"({"a":["NaN\"",NaN,-inf,1],"b":Infinity,"c":1e400,"d":-1E+999,"e":0.0,"f":[null,true,nan],"g":18446744073709551616})");
  EXPECT_TRUE(std::isnan(json.find("a")->list()[1].number()));
  EXPECT_EQ(json.find("a")->list()[2].number(), -HUGE_VAL);
  EXPECT_EQ(json.find("c")->number(), HUGE_VAL);
  EXPECT_EQ(json.find("g")->number(), 0x1p64);
  const auto message = [](const auto& parse, std::string_view broken) { return error_of([&] { parse(broken, "recipe"); }).message(); };
  EXPECT_TRUE(message(parse_settings, R"({"lr": NaNo})").starts_with("recipe: line 1, column 8: "));
  EXPECT_TRUE(message(parse_json, R"({"lr": NaN})").starts_with("recipe: line 1, column 8: "));
}

TEST(Json, KnowsWhichRealNumbersAreWhole) {
  const Json list =
      parse_settings("[8.0, 1e3, -9007199254740992.0, 2.5, 9007199254740994.0, 9223372036854775808, Infinity, NaN, true]", "test");
  const std::vector<std::optional<int64_t>> wanted = {8, 1000, -9007199254740992, {}, {}, {}, {}, {}, {}};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(list.list()[i].as_whole(), wanted[i]) << i;
}

TEST(Json, RefusesEndlessNesting) { EXPECT_NE(refusal_of(std::string(100000, '[')).find("nested deeper"), std::string::npos); }

TEST(JsonLine, WritesTheStepLog) {
  JsonLine line;
  line.add("step", 12).add("loss", 3.21).add("lr", 0.0003).add("skipped", false).add("tokens", uint64_t{24576}).add("name", "a\"b\\\n\x01");
  EXPECT_EQ(line.finish(),
            "{\"step\":12,\"loss\":3.21,\"lr\":0.0003,\"skipped\":false,\"tokens\":24576,\"name\":\"a\\\"b\\\\\\n\\u0001\"}\n");
  line.start();
  line.add("x", int64_t{-5}).add_json("y", "[1]");
  EXPECT_EQ(line.finish(), "{\"x\":-5,\"y\":[1]}\n");
}

TEST(JsonLine, WritesNineDigitsAndNullForWhatIsNotFinite) {
  for (const double value : {1.0 / 3, 2e-5, 1e300, 65536.0, -0.1, 1e-310, 123456789.5, 0.0}) {
    std::string ours;
    append_json_number(ours, value);
    char expected[32];
    std::snprintf(expected, sizeof expected, "%.9g", value);
    EXPECT_EQ(ours, expected);
  }
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    std::string ours;
    append_json_number(ours, value);
    EXPECT_EQ(ours, "null");
  }
}

TEST(JsonLine, IsReadBackAsItWasWritten) {
  const std::string hostile = "tab\t quote\" slash\\ \x7f \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 nul";
  JsonLine line;
  line.add("text", hostile).add("broken", "a\xFF\xC0\x80z");
  const Json json = parse_json(line.finish(), "line");
  EXPECT_EQ(json.find("text")->text(), hostile);
  EXPECT_EQ(json.find("broken")->text(), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz");
}

/// UTF-8 by definition: encodes a code point.
std::string encoded(uint32_t point) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xC0 | point >> 6), byte(0x80 | (point & 63))};
  if (point < 0x10000) return {byte(0xE0 | point >> 12), byte(0x80 | (point >> 6 & 63)), byte(0x80 | (point & 63))};
  return {byte(0xF0 | point >> 18), byte(0x80 | (point >> 12 & 63)), byte(0x80 | (point >> 6 & 63)), byte(0x80 | (point & 63))};
}

TEST(Utf8, TakesEveryCharacterAndNothingElse) {
  for (uint32_t point = 0; point < 0x200000; ++point) {
    const std::string bytes = encoded(point);
    const bool is_character = point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
    ASSERT_EQ(utf8_length(bytes), is_character ? bytes.size() : 0) << point;
    ASSERT_EQ(utf8_length(std::string_view(bytes).substr(0, bytes.size() - 1)), 0U) << point;
  }
  for (const char* overlong : {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF"})
    EXPECT_EQ(utf8_length(overlong), 0U);
}

TEST(Utf8, FindsTheFirstWrongByte) {
  for (size_t at = 0; at < 40; ++at) {
    const std::string before(at, 'x');
    EXPECT_EQ(utf8_valid_until(before + "\x80" + "more text after it"), at);
    EXPECT_EQ(utf8_valid_until(before + "\xE2\x82"), at);
    EXPECT_EQ(utf8_valid_until(before + "\xE2\x82\xAC"), at + 3);
  }
}

struct Records {
  std::vector<std::string> lines;
  static void write(void* user, int32_t level, const char* area, const char* text) {
    static_cast<Records*>(user)->lines.push_back(st::text(level, " ", area, " ", text));
  }
};

TEST(Logger, CallsTheHostOnceARecord) {
  Records records;
  Logger log{Records::write, &records};
  log.error("io", "file ", 3);
  log.warning("data", "short");
  log.info("train", "rate ", 0.5);
  log.debug("plan", "dropped");
  log.level = LogLevel::debug;
  log.debug("plan", "kept");
  const std::vector<std::string> expected = {"0 io file 3", "1 data short", "2 train rate 0.5", "3 plan kept"};
  EXPECT_EQ(records.lines, expected);
}

struct Watched {
  mutable int* joined;
};
void append_text(std::string&, const Watched& watched) { ++*watched.joined; }

TEST(Logger, DoesNoWorkWhenSilent) {
  int joined = 0;
  const Logger silent;
  silent.error("io", Watched{&joined});
  EXPECT_EQ(joined, 0);
  Records records;
  Logger{Records::write, &records}.info("io", Watched{&joined});
  EXPECT_EQ(joined, 1);
}

}  // namespace
}  // namespace st
