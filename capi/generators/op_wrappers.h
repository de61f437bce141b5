// The content of scaletrain/ops.h, scaletrain/ops.hpp, Python's ops.py, Java's Ops.java and C#'s Ops.cs: one function for each row of
// ops.def that a model may use.
#pragma once

#include <string>

#include "ir/op.h"

namespace st::capi {

/// Each returns a whole file.
std::string c_wrappers();
std::string cpp_wrappers();
std::string python_wrappers();
std::string java_wrappers();
std::string csharp_wrappers();

// Shared properties of a row.
bool is_dtype(const OpAttr& attr);
bool has_list(const OpAttr& attr);
bool takes_list(const OpInfo& op);
bool gives_list(const OpInfo& op);  // the shape rule gives the number of results

/// Concatenates the wrappers in the order of ops.def. Throws internal for a row whose help is missing or would end the comment that
/// contains it.
std::string each_wrapper(std::string (*wrapper_of)(const OpInfo& op));

}  // namespace st::capi
