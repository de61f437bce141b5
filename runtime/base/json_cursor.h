// JSON read as it comes, by a reader who knows what is to stand there: nothing is built that nobody asked for, so a hostile text costs no
// memory. For a value whose form is not known, see json.h.
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

/// Each call throws invalid_argument, "<what>: at byte 17: ...", with that place as data, where something else stands there.
class JsonCursor {
 public:
  JsonCursor(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  /// Calls member(key) for each member, in their order; it reads the value or skips it. A key that is given twice is refused.
  template <class Member>
  void object(const Member& member) {
    expect('{');
    std::string key;
    for (Keys keys; next_member(keys, key);) member(std::string_view(key));
  }

  /// Calls item() for each item; it reads the item or skips it.
  template <class Item>
  void list(const Item& item) {
    expect('[');
    for (bool first = true; next_item(first);) item();
  }

  std::string text();
  int64_t whole();
  /// Whether null stands there, and takes it.
  bool null();
  /// Any value, nested at most 256 deep; its text, which is valid JSON.
  std::string_view skip();
  /// Nothing but blanks may follow.
  void end();

  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  using Keys = std::set<std::string, std::less<>>;

  char look();  // the next character that is no blank; 0 at the end
  bool take(char c);
  void expect(char c);
  bool next_member(Keys& keys, std::string& key);
  bool next_item(bool& first);
  void read_text(std::string* out);  // null: skips it
  uint32_t hex4();
  void skip_word();

  std::string_view text_, what_;
  size_t at_ = 0;
};

}  // namespace st
