// Settings as JSON with numbers that JSON lacks. The only permitted error is invalid_argument with its place. What was read must read back
// from its dump, and be what parse_json() reads where that accepts the text. Otherwise as read_checkpoint.cpp.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "finding.h"

namespace {

using namespace st;

template <class Parse>
std::optional<std::string> dumped(const Parse& parse, std::string_view text) {
  try {
    return parse(text, "settings").dump();
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) found("refused with another code: " + error.message());
    if (!error.message().starts_with("settings: ") || error.message().size() < 15) found("an error without a reason: " + error.message());
    if (error.place.offset > static_cast<int64_t>(text.size()) + 1) found("a place outside the text: " + error.message());
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<std::string> settings = dumped(parse_settings, text), plain = dumped(parse_json, text);
  if (plain && settings != plain) found("read as " + settings.value_or("nothing") + ", and as JSON " + *plain);
  if (settings && dumped(parse_settings, *settings) != settings) found("does not read back: " + *settings);
  return 0;
}
