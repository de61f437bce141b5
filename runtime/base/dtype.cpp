#include "base/dtype.h"

#include <array>

#include "base/error.h"

namespace st {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Row, 8> kRows = {{{DType::f32, "f32", 4},
                                       {DType::f64, "f64", 8},
                                       {DType::bf16, "bf16", 2},
                                       {DType::f16, "f16", 2},
                                       {DType::i32, "i32", 4},
                                       {DType::i64, "i64", 8},
                                       {DType::u8, "u8", 1},
                                       {DType::boolean, "bool", 1}}};

const Row& row_of(DType dtype) {
  for (const auto& row : kRows)
    if (row.dtype == dtype) return row;
  fail(Code::invalid_argument, text("dtype: ", static_cast<int32_t>(dtype), " is not a dtype; use 1 (f32) to 8 (bool)"));
}

}  // namespace

int64_t bytes_of(DType dtype) { return row_of(dtype).bytes; }

std::string_view name_of(DType dtype) { return row_of(dtype).name; }

DType dtype_named(std::string_view name) {
  for (const auto& row : kRows)
    if (row.name == name) return row.dtype;
  fail(Code::invalid_argument, text("dtype: \"", name, "\" is unknown; use f32, f64, bf16, f16, i32, i64, u8 or bool"));
}

bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16; }

bool is_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8; }

}  // namespace st
