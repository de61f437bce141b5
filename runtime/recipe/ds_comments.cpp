#include "recipe/ds_comments.h"

#include <algorithm>
#include <cctype>

namespace st {
namespace {

void blank(std::string& text, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i)
    if (text[i] != '\n') text[i] = ' ';
}

/// One past the string that begins here with its quote.
size_t end_of_string(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

/// One past the comment that begins here, or `begin` where none does.
size_t end_of_comment(std::string_view text, size_t begin) {
  const std::string_view rest = text.substr(begin);
  if (rest.starts_with('#') || rest.starts_with("//")) return std::min(text.find('\n', begin), text.size());
  if (!rest.starts_with("/*")) return begin;
  const size_t end = text.find("*/", begin + 2);
  return end == std::string_view::npos ? text.size() : end + 2;
}

}  // namespace

std::string without_comments(std::string_view text) {
  std::string made(text);
  size_t comma = std::string::npos;  // the last one, while nothing but spaces has followed it
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (const size_t end = end_of_comment(text, at); end > at) {
      blank(made, at, end);
      at = end;
      continue;
    }
    if ((c == '}' || c == ']') && comma != std::string::npos) made[comma] = ' ';
    if (c == ',')
      comma = at;
    else if (std::isspace(static_cast<unsigned char>(c)) == 0)
      comma = std::string::npos;
    at = c == '"' ? end_of_string(text, at) : at + 1;
  }
  return made;
}

}  // namespace st
