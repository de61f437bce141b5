// Element types of tensors. The values are fixed: they are st_dtype in the C ABI.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace st {

enum class DType : int32_t { f32 = 1, f64 = 2, bf16 = 3, f16 = 4, i32 = 5, i64 = 6, u8 = 7, boolean = 8 };

int64_t bytes_of(DType dtype);
std::string_view name_of(DType dtype);     // "f32", ...
DType dtype_named(std::string_view name);  // throws invalid_argument with the known names
bool is_floating(DType dtype);
bool is_integer(DType dtype);  // i32, i64, u8

inline void append_text(std::string& out, DType dtype) { out += name_of(dtype); }

}  // namespace st
