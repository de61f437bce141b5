#include "base/json_cursor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace st {
namespace {

constexpr size_t kDeepest = 256;
constexpr std::string_view kJsonBlanks = " \t\n\r";

/// Number of digits at the start of `text`.
size_t digits_of(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

bool is_json_number(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  const size_t whole = digits_of(word);
  if (whole == 0 || (whole > 1 && word[0] == '0')) return false;
  word.remove_prefix(whole);
  if (word.starts_with('.')) {
    const size_t fraction = digits_of(word.substr(1));
    if (fraction == 0) return false;
    word.remove_prefix(1 + fraction);
  }
  if (word.starts_with('e') || word.starts_with('E')) {
    word.remove_prefix(1);
    if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
    return !word.empty() && digits_of(word) == word.size();
  }
  return word.empty();
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // bytes after the first, six bits each
  static constexpr std::array<uint32_t, 4> kFirst = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kFirst[static_cast<size_t>(more)] | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

}  // namespace

void JsonCursor::refuse(std::string_view reason) const {
  Error error(Code::invalid_argument, st::text(what_, ": at byte ", at_, ": ", reason));
  error.place.offset = static_cast<int64_t>(at_);
  throw error;
}

char JsonCursor::look() {
  at_ = std::min(text_.find_first_not_of(kJsonBlanks, at_), text_.size());
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonCursor::take(char c) {
  const bool there = look() == c;
  at_ += there ? 1 : 0;
  return there;
}

void JsonCursor::expect(char c) {
  if (!take(c)) refuse(at_ == text_.size() ? st::text("the text ends, expected ", c) : st::text("expected ", c));
}

bool JsonCursor::next_member(Keys& keys, std::string& key) {
  if (take('}')) return false;
  if (!keys.empty()) expect(',');
  key = text();
  if (!keys.insert(key).second) refuse(st::text("the key ", key, " is given twice in one object"));
  expect(':');
  return true;
}

bool JsonCursor::next_item(bool& first) {
  if (take(']')) return false;
  if (!first) expect(',');
  first = false;
  return true;
}

std::string JsonCursor::text() {
  std::string out;
  read_text(&out);
  return out;
}

void JsonCursor::read_text(std::string* out) {
  expect('"');
  for (;;) {
    size_t plain = at_;
    while (plain < text_.size() && text_[plain] != '"' && text_[plain] != '\\' && static_cast<unsigned char>(text_[plain]) >= 0x20) ++plain;
    const std::string_view run = text_.substr(at_, plain - at_);
    if (const size_t valid = utf8_valid_until(run); valid < run.size()) {
      at_ += valid;
      refuse("a string that is not UTF-8");
    }
    if (out != nullptr) *out += run;
    at_ = plain;
    if (at_ == text_.size()) refuse("the text ends inside a string");
    const char c = text_[at_++];
    if (c == '"') return;
    if (c != '\\') refuse("a control character in a string");

    static constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const char escape = at_ < text_.size() ? text_[at_++] : '\0';
    uint32_t code = 0;
    if (const size_t which = kEscapes.find(escape); escape != '\0' && which != std::string_view::npos) {
      code = static_cast<unsigned char>(kMeant[which]);
    } else if (escape == 'u') {
      code = hex4();
      if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        const uint32_t low = hex4();
        if (low < 0xDC00 || low > 0xDFFF) refuse("an unpaired surrogate");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else if (code >= 0xD800 && code <= 0xDFFF) {
        refuse("an unpaired surrogate");
      }
    } else {
      refuse("an escape that JSON does not have");
    }
    if (out != nullptr) append_utf8(*out, code);
  }
}

uint32_t JsonCursor::hex4() {
  const std::string_view digits = text_.substr(at_, 4);
  uint32_t code = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() < 4 || error != std::errc{} || stop != digits.data() + 4) refuse("\\u must be followed by four hexadecimal digits");
  at_ += 4;
  return code;
}

int64_t JsonCursor::whole() {
  look();
  int64_t value = 0;
  const std::string_view rest = text_.substr(at_);
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const std::string_view digits = rest.substr(0, static_cast<size_t>(stop - rest.data()));
  if (error == std::errc::result_out_of_range) refuse("a number that does not fit 64 bits");
  if (error != std::errc{}) refuse("expected a whole number");
  if (const size_t sign = digits[0] == '-' ? 1 : 0; digits[sign] == '0' && digits.size() > sign + 1) refuse("a number with a leading 0");
  if (digits == "-0") refuse("expected a whole number, got -0");
  at_ += digits.size();
  if (at_ < text_.size() && std::string_view(".eE").find(text_[at_]) != std::string_view::npos) refuse("expected a whole number");
  return value;
}

bool JsonCursor::null() {
  look();
  const bool there = text_.substr(at_, 4) == "null";
  at_ += there ? 4 : 0;
  return there;
}

std::string_view JsonCursor::skip() {
  look();
  const size_t begin = at_;
  std::vector<char> open;  // '{' and '[', innermost last
  bool first = true;       // no item yet in the innermost one
  do {
    const char close = open.empty() ? '\0' : open.back() == '{' ? '}' : ']';
    if (close != '\0' && take(close)) {
      open.pop_back();
      first = false;
      continue;
    }
    if (close != '\0' && !first) expect(',');
    if (close == '}') {
      read_text(nullptr);
      expect(':');
    }
    first = false;
    if (const char c = look(); c == '{' || c == '[') {
      if (open.size() == kDeepest) refuse(st::text("nested deeper than ", kDeepest));
      ++at_;
      open.push_back(c);
      first = true;
    } else if (c == '"') {
      read_text(nullptr);
    } else {
      skip_word();
    }
  } while (!open.empty());
  return text_.substr(begin, at_ - begin);
}

void JsonCursor::skip_word() {
  const size_t end = std::min(text_.find_first_of(" \t\n\r,:]}[{\"", at_), text_.size());
  const std::string_view word = text_.substr(at_, end - at_);
  if (!is_json_number(word) && word != "true" && word != "false" && word != "null") refuse("expected a value");
  at_ = end;
}

void JsonCursor::end() {
  if (look() != '\0' || at_ < text_.size()) refuse("unexpected text after the end");
}

}  // namespace st
