// An op's attributes as a host passes them: JSON, or typed.
#pragma once

#include <scaletrain/graph.h>

#include "ir/attrs.h"

namespace st::capi {

/// Parses a JSON object; NULL or "": no attributes.
Attrs attrs_of(const char* json);

/// A NULL word stands for the default. An attribute "dtype" may also be an st_dtype number; 0 stands for the default.
Attrs attrs_of(int32_t count, const st_attribute* attributes);

}  // namespace st::capi
