#include "base/json_cursor.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "thrown_error.h"

namespace st {
namespace {

std::string refusal_of(std::string_view text, const std::function<void(JsonCursor&)>& read) {
  const Error error = error_of([&] {
    JsonCursor in(text, "a.json");
    read(in);
    in.end();
  });
  if (error.code() == Code::ok) return "";
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_GE(error.place.offset, 0);
  EXPECT_TRUE(error.message().starts_with("a.json: at byte ")) << error.message();
  return error.message();
}

std::string refusal_of(std::string_view text) {
  return refusal_of(text, [](JsonCursor& in) { in.skip(); });
}

std::string text_in(std::string_view json) { return JsonCursor(json, "a.json").text(); }

TEST(JsonCursor, ReadsWhatItsReaderAsksFor) {
  JsonCursor in(R"( { "step" : 12, "shape":[2, -3],"other":{"deep":[1.5e3,null,{}]} , "name":"a" } )", "a.json");
  int64_t step = 0;
  std::vector<int64_t> shape;
  std::string name, skipped;
  in.object([&](std::string_view key) {
    if (key == "step") {
      step = in.whole();
    } else if (key == "shape") {
      in.list([&] { shape.push_back(in.whole()); });
    } else if (key == "name") {
      name = in.text();
    } else {
      skipped = in.skip();
    }
  });
  in.end();
  EXPECT_EQ(step, 12);
  EXPECT_EQ(shape, (std::vector<int64_t>{2, -3}));
  EXPECT_EQ(name, "a");
  EXPECT_EQ(skipped, R"({"deep":[1.5e3,null,{}]})");
}

TEST(JsonCursor, ReadsEveryEscape) {
  EXPECT_EQ(text_in(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(text_in(R"("\u0041\u00e9\u20AC\ud83d\ude00")"), "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(text_in(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(text_in("\"\xC3\xA9\""), "\xC3\xA9");
}

TEST(JsonCursor, RefusesTextsThatAreNone) {
  for (const char* text : {"\"", "\"a", "\"\n\"", R"("\)", R"("\x41")", R"("\u12")", R"("\u12G4")", R"("\ud83d")", R"("\ud83dx")",
                           R"("\ud83d\u0041")", R"("\ude00")", "\"\xFF\"", "\"\xC3\"", "\"\xED\xA0\x80\""}) {
    EXPECT_NE(refusal_of(text, [](JsonCursor& in) { in.text(); }), "") << text;
    EXPECT_NE(refusal_of(text), "") << text;
  }
}

TEST(JsonCursor, ReadsWholeNumbersOf64Bits) {
  EXPECT_EQ(JsonCursor("9223372036854775807", "a").whole(), INT64_MAX);
  EXPECT_EQ(JsonCursor(" -9223372036854775808", "a").whole(), INT64_MIN);
  EXPECT_EQ(JsonCursor("0", "a").whole(), 0);
  for (const char* text : {"", "9223372036854775808", "-", "+1", "01", "-01", "1.0", "1e3", "1E3", "0x1", "\"1\"", "true", "--1", "-0"})
    EXPECT_NE(refusal_of(text, [](JsonCursor& in) { in.whole(); }), "") << text;
}

TEST(JsonCursor, RefusesWhatIsNoJson) {
  EXPECT_EQ(refusal_of(R"({"a":[1,{"b":null}],"c":"d"})"), "");
  EXPECT_EQ(refusal_of("[]"), "");
  EXPECT_EQ(refusal_of("{}"), "");
  EXPECT_EQ(refusal_of("[-0,-0.50e+3,10E-2,0.0]"), "");
  EXPECT_EQ(refusal_of(" null", [](JsonCursor& in) { EXPECT_TRUE(in.null()); }), "");
  EXPECT_NE(refusal_of("nul", [](JsonCursor& in) { EXPECT_FALSE(in.null()); }), "");
  for (const char* text : {"",     "{",       "[",        "}",          "{]",
                           "[}",   "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "[1,]",
                           "[,1]", "[1 2]",   "{,}",      "{1:2}",      "{\"a\":1 \"b\":2}",
                           "nul",  "1-2",     "-01",      "1.",         "+1",
                           ".5",   "1e",      "-",        "1e+",        "{} {}",
                           "1]",   "[1]]",    "\x01",     "{\"a\":1}x", "[\"a\":1]"})
    EXPECT_NE(refusal_of(text), "") << text;
}

TEST(JsonCursor, NamesAKeyThatIsGivenTwice) {
  const auto read = [](JsonCursor& in) { in.object([&](std::string_view) { in.whole(); }); };
  EXPECT_NE(refusal_of(R"({"a":1,"b":2,"\u0061":3})", read).find("the key a is given twice"), std::string::npos);
}

TEST(JsonCursor, RefusesDepthWithoutRecursion) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal_of(nested(256)), "");
  EXPECT_NE(refusal_of(nested(257)).find("nested deeper than 256"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(10'000'000, '[')), "");
}

}  // namespace
}  // namespace st
