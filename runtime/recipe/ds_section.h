// An object of a ds_config.json, read key by key; keys that no reader asked for are unknown.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace st {

/// A part of a message. A single type, because template instances for the many messages here would be most of the code.
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

/// Throw "ds_config: " and the parts unless `holds`: ds_check invalid_argument, ds_require unsupported.
void ds_check(bool holds, std::initializer_list<DsPart> parts);
void ds_require(bool holds, std::initializer_list<DsPart> parts);

/// Throws for an unknown type of optimizer or scheduler; `near` may be empty.
[[noreturn]] void refuse_ds_type(const char* section, const std::string& type, const std::string& near, const char* known);

class DsSection {
 public:
  /// `path` precedes its keys in messages: "" or "fp16.". object null: the section is missing and has no keys.
  DsSection(std::string path, const Json* object);
  DsSection(const DsSection&) = delete;
  DsSection& operator=(const DsSection&) = delete;
  ~DsSection();  // not inline, to save code at its many uses

  /// Null if the key is missing, null or "auto".
  const Json* find(std::string_view key);
  bool is_auto(std::string_view key) const;
  bool is_there() const { return object_ != nullptr; }

  // Throw invalid_argument for a value of another type or outside [least, most].
  std::optional<double> number(std::string_view key, double least = 0);
  std::optional<int64_t> whole(std::string_view key, int64_t least, int64_t most);
  std::optional<std::string> word(std::string_view key);
  bool flag(std::string_view key, bool standard);
  DsSection section(std::string_view key);

  /// Marks keys as known but without effect; adds those that are present, with their path, to a list.
  void skip(std::initializer_list<const char*> keys, std::vector<std::string>& there);
  void skip(std::initializer_list<const char*> keys);
  /// Adds the keys that are comments ("_comment", "//") to a list.
  void skip_comments(std::vector<std::string>& there) const;

  /// Throws invalid_argument for a key that was not asked for and is not a comment.
  void finish() const;

  std::string name_of(std::string_view key) const;

 private:
  std::string path_;
  const Json* object_;
  std::vector<std::string> known_;
};

}  // namespace st
