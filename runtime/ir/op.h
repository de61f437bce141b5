// Ops and what the runtime knows of each: one row of ops.def.
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
  bool optional = false;  // "weights?": only at the end
  bool variadic = false;  // "xs*": only the last
};

struct OpAttr {
  std::string name;
  AttrValue standard;              // its alternative is the attribute's type
  bool required = false;           // without "=default" in the row
  std::vector<std::string> words;  // word: what it may be, the default first; empty: any (dtype: a dtype's name)
  std::string domain;              // int and real: where it must lie, "[0,1)"; empty: anywhere, NaN and the infinities included
};

/// A row of ops.def, parsed once.
struct OpInfo {
  Op op{};
  std::string_view name;
  std::vector<OpInput> inputs;
  std::vector<std::string> outputs;  // empty: as many as the shape rule gives
  std::vector<OpAttr> attrs;
  std::string_view help;
  std::string_view shape_rule, layout_rule, gradient;
  bool elementwise = false;  // out may share memory with an input of the same type
  bool view = false;         // sees its slot's or its input's memory; no kernel runs
  bool exchange = false;     // ranks do it together; the executor runs it, no kernel does
};

const OpInfo& info_of(Op op);
std::string_view name_of(Op op);
bool is_view(Op op);
Op op_named(std::string_view name);  // throws not_found, names the nearest

/// Checks names, types and domains against the op's row and fills in defaults. Throws invalid_argument; an unknown name: the nearest is
/// named.
Attrs make_attrs(Op op, const Attrs& given);
/// Whether make_attrs() has nothing to change or refuse: all of the row's, in its order, with its types. Allocates nothing.
bool are_whole(Op op, const Attrs& given);

}  // namespace st
