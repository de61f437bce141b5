// Attributes of a node: named constants, fixed when the graph is built. An op's row in ops.def lists its attributes with types and
// defaults; make_attrs() fills in the defaults, so a kernel may read every attribute without checking that it exists.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace st {

using Ints = std::vector<int64_t>;

/// A variant whose copy constructor assigns. GCC 12's std::variant, with alternatives that are all nothrow-movable, destroys an alternative
/// whose copy threw bad_alloc as if it had been constructed.
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

/// Copies share their values until one is set: passes copy nodes far more often than they change one. References to values end with the
/// next set().
class Attrs {
 public:
  using Values = std::vector<std::pair<std::string, AttrValue>>;
  Attrs() = default;
  explicit Attrs(Values values) : values_(std::make_shared<const Values>(std::move(values))) {}
  Attrs(std::initializer_list<std::pair<std::string_view, AttrValue>> values);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const AttrValue* find(std::string_view name) const;  // null: not found
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  // an integer value is converted
  const Ints& ints(std::string_view name) const;
  const std::string& word(std::string_view name) const;

  void set(std::string_view name, AttrValue value);  // replaces
  const Values& all() const;
  friend bool operator==(const Attrs& a, const Attrs& b) { return a.values_ == b.values_ || a.all() == b.all(); }

 private:
  const AttrValue& at(std::string_view name) const;  // throws internal: the op's row does not have it
  std::shared_ptr<const Values> values_;             // null: none
};

std::string text_of(const AttrValue& value);

}  // namespace st
