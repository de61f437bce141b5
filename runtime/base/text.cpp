#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/lower_case.h"

namespace st {

void append_text(std::string& out, double part) {
  // Not printf, which obeys the host's locale and may write a comma; this equals %.9g.
  std::array<char, 32> buffer;
  out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), part, std::chars_format::general, 9).ptr);
}

void append_text(std::string& out, std::span<const int64_t> part) {
  out += '[';
  for (size_t i = 0; i < part.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(part[i]);
  }
  out += ']';
}

std::vector<std::string> words_of(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  std::vector<std::string> words;
  for (auto begin = text.begin(); (begin = std::find_if_not(begin, text.end(), is_blank)) != text.end();) {
    const auto end = std::find_if(begin, text.end(), is_blank);
    words.emplace_back(begin, end);
    begin = end;
  }
  return words;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

int64_t whole_number(std::string_view word, int64_t otherwise) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end != word.data() ? value : otherwise;
}

std::string text_of_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return text(bytes, " B");
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1024 && unit + 1 < kUnits.size()) {
    size /= 1024;
    ++unit;
  }
  std::array<char, 32> buffer;
  const char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), size, std::chars_format::fixed, 2).ptr;
  return text(std::string_view(buffer.data(), static_cast<size_t>(end - buffer.data())), " ", kUnits[unit]);
}

namespace {

struct OtherName {
  std::string_view theirs, ours;
};

constexpr OtherName kOtherNames[] = {
#define ST_OTHER_NAME(theirs, ours) {#theirs, #ours},
#include "base/other_names.def"
#undef ST_OTHER_NAME
};

/// A name in the form in which names are compared.
std::string plain(std::string_view name) {
  std::string made = lower_case(name);
  std::ranges::replace(made, '-', '_');
  return made;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

/// Whether `name`, such as a_b_c, begins or ends with these whole words.
bool has_words(const std::string& name, const std::string& words) { return name.starts_with(words + "_") || name.ends_with("_" + words); }

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::string wanted = plain(word);
  for (const OtherName& other : kOtherNames)
    if (wanted == other.theirs && std::ranges::find(candidates, other.ours) != candidates.end()) return std::string(other.ours);
  std::string best, akin;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1, akin_distance = SIZE_MAX;
  for (const auto& candidate : candidates) {
    const std::string name = plain(candidate);
    const size_t distance = edit_distance(wanted, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
    if (distance < akin_distance && !wanted.empty() && (has_words(name, wanted) || has_words(wanted, name))) {
      akin_distance = distance;
      akin = candidate;
    }
  }
  return best.empty() ? akin : best;
}

std::vector<std::string> other_names_of(std::string_view name) {
  std::vector<std::string> all;
  for (const OtherName& other : kOtherNames)
    if (other.ours == name) all.emplace_back(other.theirs);
  return all;
}

std::string way_out(std::string_view word, std::span<const std::string> candidates, std::string_view all) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return text("; did you mean \"", near, "\"?");
  return all.empty() ? "" : text("; ", all);
}

std::string listed(std::span<const std::string> names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace st
