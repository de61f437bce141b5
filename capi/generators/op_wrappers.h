// What scaletrain/ops.h, scaletrain/ops.hpp, Python's ops.py, Java's Ops.java and C#'s Ops.cs consist of: a function for each row of
// ops.def that a model may use.
#pragma once

#include <string>

#include "ir/op.h"

namespace st::capi {

/// The whole files.
std::string c_wrappers();
std::string cpp_wrappers();
std::string python_wrappers();
std::string java_wrappers();
std::string csharp_wrappers();

// What all ask of a row.
bool is_dtype(const OpAttr& attr);
bool has_list(const OpAttr& attr);
bool takes_list(const OpInfo& op);
bool gives_list(const OpInfo& op);  // as many as the shape rule says

/// One after the other, in the order of ops.def. Throws internal for a row whose help is missing or would end the comment that it goes
/// into.
std::string each_wrapper(std::string (*wrapper_of)(const OpInfo& op));

}  // namespace st::capi
