// What a host keeps with a checkpoint, as it gives it and as it gets it back: JSON objects.
#pragma once

#include <string>

#include "checkpoint/safetensors_header.h"

namespace st::capi {

/// Of a JSON object of texts, numbers and booleans; NULL is none. `call` goes before messages.
Metadata metadata_of(const char* json, const char* call);

/// A JSON object of texts.
std::string json_of(const Metadata& metadata);

}  // namespace st::capi
