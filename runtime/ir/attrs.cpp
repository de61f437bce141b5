#include "ir/attrs.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace st {

bool operator==(const AttrValue& a, const AttrValue& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (x != nullptr && y != nullptr) return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y);
  using Held = std::variant<bool, int64_t, double, Ints, std::string>;
  return static_cast<const Held&>(a) == static_cast<const Held&>(b);
}

namespace {

void put(Attrs::Values& values, std::string_view name, AttrValue value) {
  const auto known = std::ranges::find(values, name, &Attrs::Values::value_type::first);
  if (known != values.end())
    known->second = std::move(value);
  else
    values.emplace_back(name, std::move(value));
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string_view, AttrValue>> values) {
  Values all;
  for (const auto& [name, value] : values) put(all, name, value);
  *this = Attrs(std::move(all));
}

const Attrs::Values& Attrs::all() const {
  static const Values kNone;
  return values_ != nullptr ? *values_ : kNone;
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [known, value] : all())
    if (known == name) return &value;
  return nullptr;
}

const AttrValue& Attrs::at(std::string_view name) const {
  const AttrValue* value = find(name);
  require(value != nullptr, Code::internal, "attributes: \"", name, "\" is not set; the op's row of ops.def does not have it");
  return *value;
}

namespace {

template <class T>
const T& typed(const AttrValue& value, std::string_view name) {
  const T* typed_value = std::get_if<T>(&value);
  // Kernels read attributes in every call, so the text is made only for an error.
  if (typed_value == nullptr) fail(Code::internal, text("attributes: ", name, " is ", text_of(value), ", read as another type"));
  return *typed_value;
}

}  // namespace

bool Attrs::flag(std::string_view name) const { return typed<bool>(at(name), name); }

int64_t Attrs::integer(std::string_view name) const { return typed<int64_t>(at(name), name); }

double Attrs::real(std::string_view name) const {
  const AttrValue& value = at(name);
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  return typed<double>(value, name);
}

const Ints& Attrs::ints(std::string_view name) const { return typed<Ints>(at(name), name); }

const std::string& Attrs::word(std::string_view name) const { return typed<std::string>(at(name), name); }

void Attrs::set(std::string_view name, AttrValue value) {
  Values values = all();
  put(values, name, std::move(value));
  *this = Attrs(std::move(values));
}

std::string text_of(const AttrValue& value) {
  return std::visit(
      [](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Ints>)
          return text(std::span<const int64_t>(held));
        else
          return text(held);
      },
      value);
}

}  // namespace st
