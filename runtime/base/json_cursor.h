// A streaming JSON reader for texts of known form. It builds nothing that the caller does not ask for, so a hostile text costs no memory.
// For a value of unknown form, see json.h.
//   JsonCursor in(text, "manifest.json");
//   in.object([&](std::string_view key) { if (key == "step") step = in.whole(); else in.skip(); });
//   in.end();
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace st {

/// Each call throws invalid_argument, "<what>: at byte 17: ...", with that place as data, when the text holds something else.
class JsonCursor {
 public:
  JsonCursor(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  /// Calls member(key) for each member, in their order; it must read or skip the value. Refuses a duplicate key.
  template <class Member>
  void object(const Member& member) {
    expect('{');
    std::string key;
    for (Keys keys; next_member(keys, key);) member(std::string_view(key));
  }

  /// Calls item() for each item; it must read or skip the item.
  template <class Item>
  void list(const Item& item) {
    expect('[');
    for (bool first = true; next_item(first);) item();
  }

  std::string text();
  int64_t whole();
  /// Whether the next value is null; consumes it if so.
  bool null();
  /// Any value, nested at most 256 deep. Returns its text, which is valid JSON.
  std::string_view skip();
  /// Throws unless only blanks follow.
  void end();

  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  using Keys = std::set<std::string, std::less<>>;

  char look();  // the next non-blank character; 0 at the end
  bool take(char c);
  void expect(char c);
  bool next_member(Keys& keys, std::string& key);
  bool next_item(bool& first);
  void read_text(std::string* out);  // null: skip it
  uint32_t hex4();
  void skip_word();

  std::string_view text_, what_;
  size_t at_ = 0;
};

}  // namespace st
