#include "checkpoint/run_folder.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_line.h"
#include "base/os/files.h"
#include "base/os/whole_file.h"
#include "base/text.h"
#include "checkpoint/guarded_line.h"
#include "checkpoint/shared_save.h"

namespace st {
namespace {

constexpr std::string_view kStep = "step-", kLatest = "latest", kLatestTemporary = "latest.tmp-", kPart = ".part", kGone = ".gone";

/// "step-00000120.2" is {120, 2}; the first of a step is 1.
struct StepName {
  int64_t step = 0, repeat = 1;
  auto operator<=>(const StepName&) const = default;
};

std::string print(const StepName& name) {
  const std::string digits = std::to_string(name.step);
  std::string out(kStep);
  out.append(digits.size() < 8 ? 8 - digits.size() : 0, '0').append(digits);
  if (name.repeat > 1) out.append(".").append(std::to_string(name.repeat));
  return out;
}

/// nullopt: not the name of a checkpoint.
std::optional<StepName> step_name(std::string_view text) {
  if (!text.starts_with(kStep)) return {};
  const std::string_view numbers = text.substr(kStep.size());
  const size_t dot = numbers.find('.');
  const StepName name{whole_number(numbers.substr(0, dot), -1),
                      dot == std::string_view::npos ? 1 : whole_number(numbers.substr(dot + 1), -1)};
  if (name.step < 0 || print(name) != text) return {};
  return name;
}

bool is_leftover(const os::FolderEntry& entry) {
  const std::string_view name = entry.name;
  if (entry.kind == os::PathKind::file) return name.starts_with(kLatestTemporary) || is_shared_save_file(name);
  if (entry.kind != os::PathKind::folder || !(name.ends_with(kPart) || name.ends_with(kGone))) return false;
  return step_name(name.substr(0, name.size() - kPart.size())).has_value();
}

/// Empty if the folder does not exist.
std::vector<os::FolderEntry> entries_of(const std::string& folder) {
  try {
    return os::list_folder(folder);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    return {};
  }
}

/// Removes the file unless a live rank holds its lock; the lock taken here keeps ranks from taking it meanwhile.
void remove_unheld(const std::string& path) {
  try {
    if (const auto hold = os::FileHold::take(path, os::FileHold::Kind::exclusive)) os::remove_file(path);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
  }
}

CheckpointEntry entry_of(const RunFolder& folder, const std::string& name, const StepName& step) {
  CheckpointEntry entry{name, step.step, -1, {}};
  try {
    const Manifest manifest = folder.manifest_of(name);
    entry.step = manifest.step;
    entry.sequence = manifest.sequence;
    if (manifest.checkpoint != name)
      entry.problem =
          text(kManifestName, ": belongs to ", manifest.checkpoint, ": the folder is a copy under another name; rename it back");
  } catch (const Error& error) {
    entry.problem = error.message();
  }
  return entry;
}

/// Inserts an entry of unknown sequence into a newest-first list: before the first entry that is older by name.
void insert_by_name(std::vector<CheckpointEntry>& newest_first, CheckpointEntry entry) {
  const auto name = step_name(entry.name);
  const auto older = std::ranges::find_if(newest_first, [&](const CheckpointEntry& other) { return step_name(other.name) < name; });
  newest_first.insert(older, std::move(entry));
}

}  // namespace

std::optional<LatestCheckpoint> parse_latest(std::string_view text) {
  try {
    check_guarded_line(text, kLatest);
    const Json line = parse_json(text, kLatest);
    const Json *name = line.find("checkpoint"), *sequence = line.find("sequence");
    if (name == nullptr || !name->is(Json::Kind::text) || !step_name(name->text())) return {};
    if (sequence == nullptr || !sequence->is(Json::Kind::whole)) return {};
    return LatestCheckpoint{name->text(), sequence->whole()};
  } catch (const Error&) {
    return {};
  }
}

RunFolder::RunFolder(std::string path) : path_(std::move(path)) {
  check(!path_.empty(), "checkpoint: the folder's name must not be empty");
}

std::string RunFolder::path_to(std::string_view name) const { return text(path_, "/", name); }

Manifest RunFolder::manifest_of(std::string_view name) const {
  const os::InputFile file(text(path_, "/", name, "/", kManifestName));
  require(file.size() <= kMaxManifestBytes, Code::corrupt, file.path(), ": a manifest has at most ", kMaxManifestBytes, " bytes, got ",
          file.size());
  std::string content(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(content)));
  return parse_manifest(content, file.path());
}

std::vector<CheckpointEntry> RunFolder::list() const {
  std::vector<CheckpointEntry> good, bad;
  for (const os::FolderEntry& there : entries_of(path_)) {
    const auto name = step_name(there.name);
    if (!name || there.kind != os::PathKind::folder) continue;
    CheckpointEntry entry = entry_of(*this, there.name, *name);
    (entry.problem.empty() ? good : bad).push_back(std::move(entry));
  }
  std::ranges::sort(good, [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.sequence > b.sequence; });
  for (CheckpointEntry& entry : bad) insert_by_name(good, std::move(entry));
  return good;
}

std::string RunFolder::path_of(std::string_view name) const {
  std::vector<std::string> names;
  const bool newest = name.empty() || name == kLatest;
  for (const CheckpointEntry& entry : list()) {
    if (newest ? entry.problem.empty() : entry.name == name) return path_to(entry.name);
    names.push_back(entry.name);
  }
  std::string why = names.empty() ? "; the folder holds no checkpoint" : "; no checkpoint there has a valid manifest";
  if (!newest && !names.empty()) {
    const std::string near = nearest(name, names);
    why = near.empty() ? text("; the newest is ", names.front()) : text("; did you mean ", near, "?");
  }
  const Code code = newest && !names.empty() ? Code::corrupt : Code::not_found;
  Error error(code, text("checkpoint: ", newest ? "no valid checkpoint" : text("no ", name), " in ", path_, why));
  error.place.file = path_;
  throw error;
}

std::vector<std::string> RunFolder::leftovers() const {
  std::vector<std::string> names;
  for (const os::FolderEntry& there : entries_of(path_))
    if (is_leftover(there)) names.push_back(there.name);
  return names;
}

std::optional<LatestCheckpoint> RunFolder::latest() const {
  try {
    return parse_latest(os::read_file(path_to(kLatest), 4096));
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return {};
    throw;
  }
}

std::string RunFolderWriter::part_path(std::string_view name) const { return text(folder_.path(), "/", name, kPart); }

RunFolderWriter::RunFolderWriter(std::string path) : folder_(std::move(path)) {
  os::require_kind(folder_.path(), os::PathKind::folder);
  for (const std::string_view name : {std::string_view("lock"), kLatest}) os::require_kind(folder_.path_to(name), os::PathKind::file);
  take_lock();
  remove_leftovers();
  // A checkpoint whose manifest is damaged may have had the highest sequence; `latest` has it, too.
  if (const auto latest = folder_.latest()) sequence_ = latest->sequence;
  for (const CheckpointEntry& entry : folder_.list()) sequence_ = std::max(sequence_, entry.sequence);
}

std::string RunFolderWriter::begin(int64_t step) {
  check(step >= 0, "checkpoint: step must be 0 or more, got ", step);
  if (!has_lock()) take_lock();
  StepName name{step, 1};
  while (os::kind_of(folder_.path_to(print(name))) != os::PathKind::none) ++name.repeat;
  std::string made = print(name);
  const std::string part = part_path(made);
  os::remove_folder(part);  // left if a discard() failed
  require(os::make_folder(part), Code::io, "checkpoint: another process has just created ", part, "; give each run its own folder");
  return made;
}

void RunFolderWriter::commit(const std::string& name) {
  const std::string part = part_path(name), whole = folder_.path_to(name);
  os::rename_file(part, whole);
  try {
    os::sync_folder(folder_.path());
  } catch (...) {
    os::rename_file(whole, part);  // a save that is reported as failed must not be found later
    throw;
  }
}

void RunFolderWriter::set_latest(const std::string& name, int64_t sequence) {
  const std::string line = guard_line(JsonLine().add("checkpoint", name).add("sequence", sequence).text());
  os::write_file_atomically(folder_.path_to(kLatest), [&](const auto& write) { write(std::as_bytes(std::span(line))); });
}

void RunFolderWriter::remove_leftovers() {
  for (const std::string& name : folder_.leftovers()) {
    const std::string leftover = folder_.path_to(name);
    if (is_shared_save_file(name))
      remove_unheld(leftover);
    else if (name.starts_with(kLatest))
      os::remove_file(leftover);
    else
      os::remove_folder(leftover);
  }
}

void RunFolderWriter::discard(const std::string& name) noexcept {
  try {
    os::remove_folder(part_path(name));
  } catch (...) {
    return;  // a disk error: left to remove_leftovers()
  }
}

bool RunFolderWriter::remove(const std::string& name) {
  const std::string path = folder_.path_to(name), gone = text(path, kGone), manifest = text(path, "/", kManifestName);
  if (os::kind_of(path) == os::PathKind::none) return true;
  const bool can_be_read = os::kind_of(manifest) != os::PathKind::none;
  const auto hold = can_be_read ? os::FileHold::take(manifest, os::FileHold::Kind::exclusive) : std::nullopt;
  if (can_be_read && !hold) return false;
  os::remove_folder(gone);
  os::rename_file(path, gone);
  os::sync_folder(folder_.path());
  os::remove_folder(gone);
  return true;
}

}  // namespace st
