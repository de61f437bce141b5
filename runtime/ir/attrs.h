// Attributes of a node: a few named constants, fixed when the graph is built. Which ones an op has, with types and defaults, stands in its
// row of ops.def; make_attrs() fills the defaults in, so a kernel may read each of them without asking whether it is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace st {

using Ints = std::vector<int64_t>;

/// A variant that is copied by assignment: GCC 12's own copy constructor, of alternatives that are all moved for nothing, takes the one
/// whose copy ran out of memory for a whole one and destroys it.
class AttrValue : public std::variant<bool, int64_t, double, Ints, std::string> {
 public:
  using variant::variant;
  AttrValue(const AttrValue& other) : variant() { variant::operator=(other); }  // NOLINT(bugprone-copy-constructor-init): see above
  AttrValue(AttrValue&&) noexcept = default;
  AttrValue& operator=(const AttrValue&) = default;
  AttrValue& operator=(AttrValue&&) noexcept = default;
  ~AttrValue() = default;
  /// Compares reals by their bits, so that NaN equals itself.
  friend bool operator==(const AttrValue& a, const AttrValue& b);
};

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string_view, AttrValue>> values);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const AttrValue* find(std::string_view name) const;  // null: not there
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  // an integer value is converted
  const Ints& ints(std::string_view name) const;
  const std::string& word(std::string_view name) const;

  void set(std::string_view name, AttrValue value);  // replaces
  const std::vector<std::pair<std::string, AttrValue>>& all() const { return values_; }
  bool operator==(const Attrs&) const = default;

 private:
  const AttrValue& at(std::string_view name) const;  // throws internal: the op's row does not have it
  std::vector<std::pair<std::string, AttrValue>> values_;
};

std::string text_of(const AttrValue& value);

}  // namespace st
