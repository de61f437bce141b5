#include "hugging_face_config.h"

#include <filesystem>

#include "mapped_file.h"

namespace cli {
namespace {

constexpr int kMostDepth = 64;  // printing recurses

}  // namespace

std::string config_next_to(const std::string& weights) {
  std::error_code unknown;
  const std::filesystem::path path(weights);
  const std::filesystem::path config = (std::filesystem::is_directory(path, unknown) ? path : path.parent_path()) / "config.json";
  return std::filesystem::is_regular_file(config, unknown) ? config.string() : "";
}

Json read_config(const std::string& path, const std::string& model) {
  const MappedFile file(path);
  bool is_deep = false;
  const auto is_shallow = [&](int depth, Json::parse_event_t, const Json&) {
    is_deep = is_deep || depth > kMostDepth;
    return !is_deep;
  };
  Json config = Json::parse(file.bytes(), is_shallow, false);
  if (is_deep) refuse(path, " is nested deeper than ", kMostDepth, "; it must be the config.json of a Hugging Face model");
  if (!config.is_object()) refuse(path, " is not a JSON object; it must be the config.json of a Hugging Face model");
  return {{"name", model}, {"options", std::move(config)}};
}

}  // namespace cli
