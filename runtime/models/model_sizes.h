// Checks of sizes that several built-in models have. Each throws invalid_argument that begins with `model`.
#pragma once

#include <cstdint>
#include <string_view>

namespace st {

void check_at_least_one(std::string_view model, std::string_view key, int64_t value);
/// Names the nearest width that `heads` divides. Both are at least 1.
void check_heads(std::string_view model, int64_t width, int64_t heads);
/// At least 1 and at most 4096: the graph's size depends on the number of layers, so a typo must not fill the memory.
void check_layers(std::string_view model, int64_t layers);
/// At least 1 and at most 2^31 - 1, because token ids are i32.
void check_vocabulary(std::string_view model, int64_t vocabulary);
/// A finite number above 0.
void check_above_zero(std::string_view model, std::string_view key, double value);

}  // namespace st
