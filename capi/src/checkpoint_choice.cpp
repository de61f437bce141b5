#include "checkpoint_choice.h"

#include <atomic>

#include "base/error.h"
#include "comm/rank_texts.h"
#include "host_metadata.h"

namespace st::capi {
namespace {

std::string_view last_part(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

/// The folder is a checkpoint itself: accepts only its own name, or NULL.
const std::string& own_folder(const CheckpointObject& object, const char* name) {
  const std::string& folder = object.folder.path();
  require(name == nullptr || last_part(folder) == name, Code::not_found, "checkpoint: ", folder, " is itself a checkpoint, not \"",
          name == nullptr ? "" : name, "\"; open the run's folder, or pass NULL");
  return folder;
}

/// Whether the error is in the checkpoint's own files, or occurred while it was opened. Errors in a host's file, an unknown tensor name, a
/// lack of memory, or a format from a newer library are not damage.
bool is_damage(const Error& error, const std::string& folder, bool opened) {
  if (error.code() == Code::corrupt) return true;
  const bool of_its_files = !opened || error.place.file.starts_with(folder + "/");
  return of_its_files && (error.code() == Code::io || error.code() == Code::not_found);
}

[[noreturn]] void throw_none(const std::string& folder, const std::vector<std::string>& skipped) {
  require(!skipped.empty(), Code::not_found, "checkpoint: ", folder, " holds no checkpoint");
  std::string reasons;
  for (const std::string& reason : skipped) reasons += "\n  " + reason;
  fail(Code::corrupt, text("checkpoint: none of the ", skipped.size(), " checkpoints in ", folder, " is whole:", reasons));
}

/// Whether an error that is the same on all ranks is damage. The ranks' paths may differ.
bool is_damage_of(const Error& error, const std::string& name) {
  const std::string file = error.place.file + "/";  // the checkpoint's folder itself, if it is missing or being removed
  const bool lacks_file = error.code() == Code::not_found && file.find(text("/", name, "/")) != std::string::npos;
  return error.code() == Code::corrupt || error.code() == Code::io || lacks_file;
}

/// Returns rank 0's answer on all ranks. If `ask` throws on rank 0, all ranks throw.
std::string answer_of_first(Communicator& ranks, const std::function<std::string()>& ask) {
  std::string answer;
  std::exception_ptr error;
  try {
    if (ranks.rank() == 0) answer = ask();
  } catch (...) {
    error = std::current_exception();
  }
  require_all_fine(ranks, error, "resume");
  return gather_texts(ranks, answer, "which checkpoint").front();
}

void give_manifest(const Manifest& manifest, LoadReport& made) {
  made.missing.clear();  // entries of a newer checkpoint that was not whole
  made.unexpected.clear();
  made.step = manifest.step;
  made.name = manifest.checkpoint;
  made.metadata = json_of(manifest.metadata);
}

void skip(CheckpointObject& object, const std::string& name, const std::string& why, std::vector<std::string>& skipped) {
  skipped.push_back(text(name, ": ", why));
  if (object.manager) object.manager->mark_corrupt(name);
}

}  // namespace

std::function<bool()> cancelled_from_now(const Context& context) {
  const std::atomic<uint64_t>& cancels = context.cancels();
  return [&cancels, before = cancels.load()] { return cancels != before; };
}

std::string requested_name(const CheckpointObject& object, const char* name) {
  if (!object.is_one && name == nullptr) return "the newest (NULL)";
  return text("\"", object.is_one ? last_part(own_folder(object, name)) : std::string_view(name), "\"");
}

std::string folder_of(CheckpointObject& object, const char* name) {
  if (object.is_one) return own_folder(object, name);
  return object.folder.path_of(name == nullptr ? "" : name);
}

void with_checkpoint(CheckpointObject& object, const char* name, std::vector<std::string>& skipped,
                     const std::function<void(const CheckpointReader&)>& use) {
  const std::function<bool()> is_cancelled = cancelled_from_now(*object.context);
  if (object.is_one || name != nullptr) return use(CheckpointReader(folder_of(object, name), is_cancelled));
  const std::string& folder = object.folder.path();
  for (const CheckpointEntry& entry : object.folder.list()) {
    std::optional<CheckpointReader> reader;
    try {
      reader.emplace(object.folder.path_of(entry.name), is_cancelled);
      return use(*reader);
    } catch (const Error& error) {
      if (!is_damage(error, text(folder, "/", entry.name), reader.has_value())) throw;
      skip(object, entry.name, error.message(), skipped);
    }
  }
  throw_none(folder, skipped);
}

void load_from(CheckpointObject& object, const char* name, st_load_report* report,
               const std::function<void(const CheckpointReader&, LoadReport&)>& load) {
  LoadReport& made = object.report = LoadReport();
  try {
    with_checkpoint(object, name, made.skipped, [&](const CheckpointReader& reader) {
      give_manifest(reader.manifest(), made);
      load(reader, made);
    });
  } catch (...) {
    made.give(report);
    throw;
  }
  made.give(report);
}

void load_together(CheckpointObject& object, Communicator& ranks, const char* name, st_load_report* report,
                   const std::function<void(const OpenCheckpoint&, LoadReport&)>& load) {
  LoadReport& made = object.report = LoadReport();
  const std::function<bool()> is_cancelled = cancelled_from_now(*object.context);
  const bool is_chosen = object.is_one || name != nullptr;
  std::vector<std::string> left;  // rank 0's checkpoints still to try, the newest last
  const auto load_one = [&](const std::string& chosen) {
    std::optional<CheckpointReader> reader;
    load(
        [&]() -> const CheckpointReader& {
          reader.emplace(is_chosen ? folder_of(object, name) : object.folder.path_of(chosen), is_cancelled);
          give_manifest(reader->manifest(), made);
          return *reader;
        },
        made);
  };
  try {
    if (is_chosen) load_one({});
    const auto begin = [&] {
      for (const CheckpointEntry& entry : object.folder.list()) left.insert(left.begin(), entry.name);
      return std::string();
    };
    if (!is_chosen) answer_of_first(ranks, begin);
    for (bool is_done = is_chosen; !is_done;) {
      const std::string chosen = answer_of_first(ranks, [&] { return left.empty() ? std::string() : left.back(); });
      if (chosen.empty()) throw_none(object.folder.path(), made.skipped);
      if (!left.empty()) left.pop_back();
      try {
        load_one(chosen);
        is_done = true;
      } catch (const Error& error) {
        if (!is_damage_of(error, chosen)) throw;
        skip(object, chosen, error.message(), made.skipped);
      }
    }
  } catch (...) {
    made.give(report);
    throw;
  }
  made.give(report);
}

}  // namespace st::capi
