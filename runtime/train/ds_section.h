// An object of a ds_config.json, read key by key: what nobody asked for is unknown.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace st {

/// A part of a message. One type: here are many messages, and a template's instance of its own for each would be most of the code.
class DsPart {
 public:
  DsPart(std::string_view words) : words_(words) {}                                   // NOLINT(google-explicit-constructor)
  DsPart(const char* words) : words_(words) {}                                        // NOLINT(google-explicit-constructor)
  DsPart(const std::string& words) : words_(words) {}                                 // NOLINT(google-explicit-constructor)
  DsPart(int64_t number) : number_(static_cast<double>(number)), is_number_(true) {}  // NOLINT(google-explicit-constructor)
  DsPart(double number) : number_(number), is_number_(true) {}                        // NOLINT(google-explicit-constructor)
  void append_to(std::string& message) const;

 private:
  std::string_view words_;
  double number_ = 0;
  bool is_number_ = false;
};

/// Throw "ds_config: " and the parts, as invalid_argument and as unsupported, where it does not hold.
void ds_check(bool holds, std::initializer_list<DsPart> parts);
void ds_require(bool holds, std::initializer_list<DsPart> parts);

/// Of an optimizer or scheduler; `near` may be empty.
[[noreturn]] void refuse_ds_type(const char* section, const std::string& type, const std::string& near, const char* known);

class DsSection {
 public:
  /// `path` stands before its keys in messages: "" or "fp16.". Null: it is not there, and no key is.
  DsSection(std::string path, const Json* object);
  DsSection(const DsSection&) = delete;
  DsSection& operator=(const DsSection&) = delete;
  ~DsSection();  // not inline: there are many

  /// Null: not there, null or "auto".
  const Json* find(std::string_view key);
  bool is_auto(std::string_view key) const;
  bool is_there() const { return object_ != nullptr; }

  // Throw invalid_argument for another kind, or out of [least, most].
  std::optional<double> number(std::string_view key, double least = 0);
  std::optional<int64_t> whole(std::string_view key, int64_t least, int64_t most);
  std::optional<std::string> word(std::string_view key);
  bool flag(std::string_view key, bool standard);
  DsSection section(std::string_view key);

  /// Known, and of no meaning here; adds those that are there, with their path, to a list.
  void skip(std::initializer_list<const char*> keys, std::vector<std::string>& there);
  void skip(std::initializer_list<const char*> keys);
  /// Adds the keys that are comments ("_comment", "//") to a list.
  void skip_comments(std::vector<std::string>& there) const;

  /// Throws invalid_argument for a key that was not asked for and is no comment.
  void finish() const;

  std::string name_of(std::string_view key) const;

 private:
  std::string path_;
  const Json* object_;
  std::vector<std::string> known_;
};

}  // namespace st
