// The members of a JSON object that a program has written, read one by one: each must be there, of its kind and in its range, and none may
// be left unread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace st {

/// Borrows the object. Each call throws invalid_argument with the object's name, the member, its value and what is allowed.
class JsonFields {
 public:
  /// `writer`: the way out of an error, such as "give what `scaletrain info --json` writes".
  JsonFields(const Json& object, std::string name, std::string_view writer);

  const Json& any(std::string_view key);
  int64_t whole(std::string_view key, int64_t least, int64_t most);
  double rate(std::string_view key);  // a number of at least 0
  bool flag(std::string_view key);
  std::string text(std::string_view key);
  std::string one_of(std::string_view key, std::span<const std::string_view> allowed);
  /// Refuses members that nobody has read, which this version of the format does not have.
  void done(int64_t version) const;

 private:
  const Json& object_;
  std::string name_;
  std::string_view writer_;
  std::vector<std::string_view> read_;
};

}  // namespace st
