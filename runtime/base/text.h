// Joins values into text for messages: text("rows ", 3, ", rate ", 0.5). Overload append_text to teach it a type.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace st {

inline void append_text(std::string& out, std::string_view part) { out += part; }
inline void append_text(std::string& out, const char* part) { out += part; }  // else a literal would be taken as a bool
inline void append_text(std::string& out, char part) { out += part; }
inline void append_text(std::string& out, bool part) { out += part ? "true" : "false"; }
void append_text(std::string& out, double part);                    // 9 significant digits, shortest form
void append_text(std::string& out, std::span<const int64_t> part);  // [2, 3]

template <std::integral T>
void append_text(std::string& out, T part) {
  out += std::to_string(part);
}

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

/// "1.50 GiB", "12 B": for people; machines get the integer.
std::string text_of_bytes(int64_t bytes);

/// The words between blanks and ends of lines.
std::vector<std::string> words_of(std::string_view text);

/// Without their ends; the last may have none.
std::vector<std::string_view> lines_of(std::string_view text);

/// The integer that a word begins with, whatever the host's locale.
int64_t whole_number(std::string_view word, int64_t otherwise);

/// The candidate that was probably meant: what other systems call `word` (other_names.def), else the nearest by edit distance, else one
/// that begins or ends with the words of the other (weight_decay and weight_decay_scale). Case does not count, nor - for _. Empty: none is
/// near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// Other systems' names for one of ours (other_names.def).
std::vector<std::string> other_names_of(std::string_view name);

/// After an unknown word: "; did you mean \"lr\"?", else "; " and `all`, which lists what there is or says how to; "": nothing.
std::string way_out(std::string_view word, std::span<const std::string> candidates, std::string_view all = "");

/// "a, b, c"
std::string listed(std::span<const std::string> names);

}  // namespace st
