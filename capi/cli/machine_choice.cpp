#include "machine_choice.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace cli {

Json machine_choice(const std::string& value) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(value, ignored);
  if (!is_file && value.find('/') == std::string::npos && !value.ends_with(".json")) return value;
  std::ifstream file(value);
  if (!is_file || !file) refuse("--machine: cannot read ", value);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Json machine = Json::parse(text, nullptr, false);
  if (!machine.is_object()) refuse("--machine: ", value, " is not a JSON object; give a file of `scaletrain bench --calibrate FILE`");
  return machine;
}

}  // namespace cli
