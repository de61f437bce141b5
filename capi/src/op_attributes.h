// An op's attributes as a host gives them: as JSON, or typed.
#pragma once

#include <scaletrain/graph.h>

#include "ir/attrs.h"

namespace st::capi {

/// A JSON object; NULL or "": none.
Attrs attrs_of(const char* json);

/// A word that is NULL stands for the default. An attribute "dtype" may also be the number of an st_dtype, 0: the default.
Attrs attrs_of(int32_t count, const st_attribute* attributes);

}  // namespace st::capi
