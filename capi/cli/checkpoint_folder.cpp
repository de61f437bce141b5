#include "checkpoint_folder.h"

#include <cstdio>
#include <filesystem>
#include <string_view>

namespace cli {
namespace {

/// Whether the last call failed on the checkpoint's own files. An export's destination may be on a failing disk, too.
bool is_damage(st_status status, const std::string& folder) {
  if (status != ST_IO) return status == ST_CORRUPT;
  st_error_info info;
  ask(st_error_info_init(&info, sizeof info));
  ask(st_last_error_info(&info));
  return info.file != nullptr && std::string_view(info.file).starts_with(folder + "/");
}

}  // namespace

void check_folder(st_status status) {
  if (status == ST_OK) return;
  const bool is_failure = status == ST_CORRUPT || status == ST_IO || status == ST_INTERNAL;
  throw Failure(is_failure ? kFailed : kRefused, st_last_error());
}

CheckpointFolder::CheckpointFolder(const std::string& path) : path_(path), context_(make<Context>(st_context_create, nullptr)) {
  std::error_code unknown;
  const std::filesystem::file_status found = std::filesystem::status(path, unknown);
  if (std::filesystem::symlink_status(path, unknown).type() == std::filesystem::file_type::not_found)
    refuse("checkpoint: no such folder: ", path);
  if (std::filesystem::exists(found) && !std::filesystem::is_directory(found))
    refuse("checkpoint: ", path, " is not a folder; name a run's folder, or one checkpoint");
  is_one_ = std::filesystem::exists(std::filesystem::symlink_status(std::filesystem::path(path) / "manifest.json", unknown));
  st_checkpoint_options options;
  ask(st_checkpoint_options_init(&options, sizeof options));
  options.read_only = 1;
  st_checkpoint* checkpoint = nullptr;
  check_folder(st_checkpoint_create(context_.get(), path.c_str(), &options, &checkpoint));
  checkpoint_.reset(checkpoint);
}

std::vector<CheckpointFolder::Entry> CheckpointFolder::entries() const {
  const char* json = nullptr;
  check_folder(st_checkpoint_list(handle(), &json));
  std::vector<Entry> all;
  for (const Json& row : Json::parse(json))
    all.push_back(
        {row["name"].get<std::string>(), row["problem"].is_null() ? "" : row["problem"].get<std::string>(), row["step"].get<int64_t>()});
  if (all.empty()) refuse("checkpoint: ", path_, " holds no checkpoint");
  return all;
}

std::string CheckpointFolder::newest(const std::function<st_status(const char* name)>& call) const {
  for (const Entry& entry : entries()) {
    if (is_one_ && !entry.problem.empty()) throw Failure(kFailed, "checkpoint: " + path_ + ": " + entry.problem);
    const st_status status = entry.problem.empty() ? call(key(entry.name)) : ST_CORRUPT;
    if (status == ST_OK) return entry.name;
    if (is_one_ || !is_damage(status, path_ + "/" + entry.name)) check_folder(status);
    std::fprintf(stderr, "skipped %s: %s\n", entry.name.c_str(), entry.problem.empty() ? st_last_error() : entry.problem.c_str());
  }
  throw Failure(kFailed, "checkpoint: no checkpoint in " + path_ + " is whole");
}

Json CheckpointFolder::manifest(const std::string& name) const {
  const char* json = nullptr;
  check_folder(st_checkpoint_inspect(handle(), key(name), &json));
  return Json::parse(json);
}

}  // namespace cli
