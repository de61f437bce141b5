// Joins values into text for messages: text("rows ", 3, ", rate ", 0.5). Overload append_text to support another type.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace st {

inline void append_text(std::string& out, std::string_view part) { out += part; }
inline void append_text(std::string& out, const char* part) { out += part; }  // else a literal converts to bool
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

/// "1.50 GiB", "12 B": for people; machine-readable output has the integer.
std::string text_of_bytes(int64_t bytes);

/// The words of a text, split at blanks and newlines.
std::vector<std::string> words_of(std::string_view text);

/// The lines of a text without their newlines; the last line may have none.
std::vector<std::string_view> lines_of(std::string_view text);

/// The integer that a word begins with, whatever the host's locale.
int64_t whole_number(std::string_view word, int64_t otherwise);

/// The candidate that was probably meant: another system's name for it (other_names.def), else the nearest by edit distance, else one that
/// starts or ends with the other's words (weight_decay and weight_decay_scale). Ignores case and treats - as _. Empty: none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// Other systems' names for one of ours (other_names.def).
std::vector<std::string> other_names_of(std::string_view name);

/// The end of an error about an unknown word: "; did you mean \"lr\"?", else "; " and `all`, which lists the valid words or says how to get
/// them. Empty when `all` is empty too.
std::string way_out(std::string_view word, std::span<const std::string> candidates, std::string_view all = "");

/// "a, b, c"
std::string listed(std::span<const std::string> names);

}  // namespace st
