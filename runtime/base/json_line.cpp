#include "base/json_line.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace st {
namespace {

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[static_cast<size_t>(c) >> 4];
  out += kHex[static_cast<size_t>(c) & 15];
}

}  // namespace

void append_json_string(std::string& out, std::string_view value) {
  out += '"';
  for (size_t i = 0; i < value.size();) {
    const size_t length = utf8_length(value.substr(i));
    const char c = value[i];
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\')) {
      append_escaped(out, c);
    } else {
      out += value.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  out += '"';
}

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  // to_chars, not printf: a host's locale may write a comma, which is not JSON.
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 9).ptr;
  out.append(buffer.data(), end);
}

std::string json_list(const std::vector<std::string>& values) {
  std::string out = "[";
  for (const std::string& value : values) out += (out.size() > 1 ? "," : "") + value;
  return out + ']';
}

JsonLine& JsonLine::add(std::string_view key, double value) {
  begin(key);
  append_json_number(out_, value);
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, std::string_view value) {
  begin(key);
  append_json_string(out_, value);
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, bool value) { return add_json(key, value ? "true" : "false"); }

JsonLine& JsonLine::add_json(std::string_view key, std::string_view value) {
  begin(key);
  out_ += value;
  return *this;
}

const std::string& JsonLine::finish() {
  out_ += "}\n";
  return out_;
}

void JsonLine::begin(std::string_view key) {
  if (out_.size() > 1) out_ += ',';
  append_json_string(out_, key);
  out_ += ':';
}

void JsonLine::append_integer(int64_t value) {
  std::array<char, 24> buffer;
  out_.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

void JsonLine::append_integer(uint64_t value) {
  std::array<char, 24> buffer;
  out_.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

}  // namespace st
