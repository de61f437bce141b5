// Ops and the runtime's facts about each of them: one row of ops.def per op.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"

namespace st {

enum class Op : int32_t {
#define ST_OP(name, ...) name,
#include "ir/ops.def"
#undef ST_OP
};

constexpr int32_t kOps = 0
#define ST_OP(...) +1
#include "ir/ops.def"
#undef ST_OP
    ;

struct OpInput {
  std::string name;
  bool optional = false;  // "weights?"; only at the end
  bool variadic = false;  // "xs*"; only the last one
};

struct OpAttr {
  std::string name;
  AttrValue standard;              // the default; its alternative is the attribute's type
  bool required = false;           // no "=default" in the row
  std::vector<std::string> words;  // word: the allowed words, the default first; empty: any (dtype: a dtype's name)
  std::string domain;              // int and real: the allowed interval, "[0,1)"; empty: any value, NaN and infinities included
};

/// A row of ops.def, parsed once.
struct OpInfo {
  Op op{};
  std::string_view name;
  std::vector<OpInput> inputs;
  std::vector<std::string> outputs;  // empty: the shape rule decides how many
  std::vector<OpAttr> attrs;
  std::string_view help;
  std::string_view shape_rule, layout_rule, gradient;
  bool elementwise = false;  // out may share memory with an input of the same type
  bool view = false;         // a view of its slot's or input's memory; no kernel runs
  bool exchange = false;     // a collective op; the executor runs it, not a kernel
};

const OpInfo& info_of(Op op);
std::string_view name_of(Op op);
bool is_view(Op op);
/// Whether it is a collective of values, which runs in its turn like a kernel; others read or write slots.
bool is_of_values(Op op);
Op op_named(std::string_view name);  // throws not_found, suggests the nearest

/// Checks names, types and domains against the op's row and fills in defaults. Throws invalid_argument; suggests the nearest name for an
/// unknown one.
Attrs make_attrs(Op op, const Attrs& given);
/// Whether make_attrs() would return `given` unchanged: all attributes of the row, in its order, with valid values. Allocates nothing.
bool are_whole(Op op, const Attrs& given);

}  // namespace st
