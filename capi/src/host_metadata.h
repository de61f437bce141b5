// A host's metadata in a checkpoint: JSON objects in both directions.
#pragma once

#include <string>

#include "checkpoint/safetensors_header.h"

namespace st::capi {

/// Parses a JSON object of texts, numbers and booleans; NULL is none. `call` prefixes messages.
Metadata metadata_of(const char* json, const char* call);

/// A JSON object of texts.
std::string json_of(const Metadata& metadata);

}  // namespace st::capi
