#include <scaletrain/checkpoint.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/os/files.h"
#include "base/utf8.h"
#include "checkpoint_choice.h"
#include "context_object.h"
#include "host_metadata.h"
#include "pending_object.h"
#include "read_options.h"
#include "strided_range.h"
#include "view_load.h"
#include "views.h"

using namespace st;
using namespace st::capi;

namespace {

constexpr int64_t kLeastFile = int64_t{1} << 20;

/// Checks the host's options field by field and converts them.
ManagerOptions manager_options(const st_checkpoint_options& theirs) {
  const auto not_negative = [](int64_t value, const char* name) {
    check(value >= 0, "st_checkpoint_create: ", name, " is ", value, "; give 0 or more");
    return value;
  };
  ManagerOptions ours;
  ours.retention.last = not_negative(theirs.keep_last, "keep_last");
  ours.retention.every = not_negative(theirs.keep_every, "keep_every");
  ours.retention.best = not_negative(theirs.keep_best, "keep_best");
  ours.retention.higher_is_better = theirs.best_is_higher != 0;
  if (theirs.best != nullptr) ours.best = theirs.best;
  check(theirs.keep_best == 0 || !ours.best.empty(), "st_checkpoint_create: keep_best is ", theirs.keep_best, ", but best is ",
        theirs.best == nullptr ? "NULL" : "empty", "; name the metric to compare, such as \"validation_loss\"");
  check(theirs.queue >= 0 && theirs.queue <= 16, "st_checkpoint_create: queue is ", theirs.queue, "; it must be 0 to 16");
  ours.queue = theirs.queue;
  check(std::isfinite(theirs.bytes_per_second) && theirs.bytes_per_second >= 0, "st_checkpoint_create: bytes_per_second is ",
        theirs.bytes_per_second, "; give a finite number of 0 or more, where 0 means no limit");
  ours.write.bytes_per_second = theirs.bytes_per_second;
  check(theirs.file_bytes >= kLeastFile, "st_checkpoint_create: file_bytes is ", theirs.file_bytes, "; give ", kLeastFile, " or more");
  ours.write.file_bytes = theirs.file_bytes;
  return ours;
}

st_checkpoint_options default_options() {
  const ManagerOptions ours;
  st_checkpoint_options made{};
  made.keep_last = ours.retention.last;
  made.keep_every = ours.retention.every;
  made.keep_best = ours.retention.best;
  made.bytes_per_second = ours.write.bytes_per_second;
  made.file_bytes = ours.write.file_bytes;
  return made;
}

void require_folder(const std::string& path) {
  if (os::kind_of(path) == os::PathKind::folder) return;
  os::require_kind(path, os::PathKind::folder);
  Error error(Code::not_found, text("st_checkpoint_create: no such folder: ", path, "; create it, or open it without read_only"));
  error.place.file = path;
  throw error;
}

std::vector<HostView> views_of(int64_t n, const st_named_view* theirs, const char* call,
                               HostView (*look)(std::string_view name, const st_view* view, const char* call)) {
  constexpr int64_t kMost = 1 << 20;
  check(n >= 1 && n <= kMost, call, ": n is ", n, "; it must be 1 to ", kMost);
  check(theirs != nullptr, call, ": views is NULL with n = ", n);
  std::vector<HostView> ours;
  ours.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    check(theirs[i].name != nullptr, call, ": view ", i, " has no name (NULL)");
    ours.push_back(look(theirs[i].name, &theirs[i].view, call));
  }
  return ours;
}

/// Refuses what no file could hold while the host's call can still report it.
void check_names(const std::vector<HostView>& views, const char* call) {
  std::vector<std::string_view> names;
  names.reserve(views.size());
  for (const HostView& view : views) {
    check(!view.name.empty(), call, ": view ", names.size(), " has an empty name; give each one");
    check(utf8_valid_until(view.name) == view.name.size(), call, ": the name of view ", names.size(), " is not UTF-8");
    names.push_back(view.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  check(twice == names.end(), call, ": two views are named \"", twice == names.end() ? "" : *twice, "\"; give each name once");
}

CheckpointContent content_of(int64_t step, const std::vector<HostView>& views, Metadata metadata) {
  CheckpointContent content;
  content.step = step;
  content.metadata = std::move(metadata);
  for (const HostView& view : views) {
    SnapshotTensor tensor;
    tensor.name = view.name;
    tensor.kind = TensorKind::host;
    tensor.dtype = view.dtype;
    tensor.shape = view.shape;
    if (is_compact(view))
      tensor.bytes = {static_cast<const std::byte*>(view.data), static_cast<size_t>(view.bytes())};
    else
      tensor.copy = [&view](int64_t first, std::span<std::byte> out) { copy_range(view, first, out); };
    content.tensors.push_back(std::move(tensor));
  }
  return content;
}

}  // namespace

st_status st_checkpoint_options_init(st_checkpoint_options* options, size_t size) { return init(options, size, default_options()); }
st_status st_load_report_init(st_load_report* report, size_t size) {
  st_load_report defaults{};
  defaults.step = -1;
  return init(report, size, defaults);
}
st_status st_save_progress_init(st_save_progress* progress, size_t size) {
  st_save_progress defaults{};
  defaults.saved_step = -1;
  return init(progress, size, defaults);
}

st_status st_checkpoint_create(st_context* context, const char* folder, const st_checkpoint_options* options, st_checkpoint** checkpoint) {
  return guard([&] {
    given(checkpoint, "st_checkpoint_create: checkpoint");
    auto shared = peek(context)->context;  // first, so that allocations use its memory
    const std::string path = text_given(folder, "st_checkpoint_create: folder");
    check(!path.empty(), "st_checkpoint_create: folder is empty; name a folder");
    const st_checkpoint_options theirs = options == nullptr ? default_options() : take(options, "st_checkpoint_create: options");
    ManagerOptions ours = manager_options(theirs);
    auto object = std::make_shared<CheckpointObject>(path);
    object->writing = ours.write;
    const std::string manifest = text(path, "/", kManifestName);
    object->is_one = os::kind_of(manifest) != os::PathKind::none || !os::wrong_kind_at(manifest, os::PathKind::file).empty();
    object->workers = shared->make_workers(shared->threads());
    ours.require_memory = [shared](int64_t bytes) { shared->require_memory("the copy to be written", bytes); };
    const bool reads = theirs.read_only != 0;
    if (reads)
      require_folder(path);
    else
      check(!object->is_one, "st_checkpoint_create: ", path, " is itself a checkpoint; name the run's folder, or open it read_only");
    (reads ? object->beside : object->manager) =
        std::make_unique<CheckpointManager>(path, std::move(ours), shared->memory(), shared->options().log,
                                            reads ? CheckpointManager::Place::beside : CheckpointManager::Place::of_folder);
    shared->on_trim(object);
    object->context = std::move(shared);
    hand_out(checkpoint, std::move(object));
  });
}

st_status st_checkpoint_destroy(st_checkpoint* checkpoint) { return drop(checkpoint); }

st_status st_checkpoint_save(st_checkpoint* checkpoint, int64_t step, int64_t n, const st_named_view* views, const char* metadata,
                             st_pending** pending) {
  return guard([&] {
    constexpr const char* kCall = "st_checkpoint_save";
    const auto object = find(checkpoint);
    check(step >= 0, kCall, ": step is ", step, "; give 0 or more");
    const std::vector<HostView> ours = views_of(n, views, kCall, read_view);
    check_names(ours, kCall);
    const CheckpointContent content = content_of(step, ours, metadata_of(metadata, kCall));
    CheckpointManager& manager = object->to_save(kCall);
    const std::function<bool()> is_cancelled = cancelled_from_now(*object->context);
    if (pending == nullptr) return manager.save_now(content, *object->workers, is_cancelled);
    auto made = std::make_shared<PendingObject>();
    made->work = manager.save(content, *object->workers, is_cancelled);
    hand_out(pending, std::move(made));
  });
}

st_status st_checkpoint_load(st_checkpoint* checkpoint, const char* name, int64_t n, const st_named_view* views,
                             const st_read_options* options, st_load_report* report) {
  return guard([&] {
    constexpr const char* kCall = "st_checkpoint_load";
    if (report != nullptr) take(report, "st_checkpoint_load: report");
    const auto object = find(checkpoint);
    const ReadOptions ours = read_options(options, kCall);
    const bool overwrite = options != nullptr && take(options, "st_checkpoint_load: options").overwrite != 0;
    const Views may_be = overwrite ? Views::overwritten : Views::unchanged_on_error;
    const std::vector<HostView> to = views_of(n, views, kCall, written_view);
    std::vector<HostView> by_address = to;
    require_apart(by_address, kCall);
    load_from(*object, name, report, [&](const CheckpointReader& reader, LoadReport& made) {
      const FloatMode mode;  // the host's rounding must not affect a conversion
      load_views(reader, to, ours, may_be, *object->workers, made);
    });
    object->continue_run();
  });
}

st_status st_checkpoint_wait(st_checkpoint* checkpoint, int64_t milliseconds) {
  return guard([&] {
    const Use object(peek(checkpoint));
    require(object->saves().wait(milliseconds), Code::timeout, "st_checkpoint_wait: a save is still running after ", milliseconds,
            " ms; call again, or pass a negative number to wait without a limit");
    if (const auto error = object->saves().take_error()) throw Error(*error);
  });
}

st_status st_checkpoint_progress(st_checkpoint* checkpoint, st_save_progress* progress) {
  return guard([&] {
    const Use object(peek(checkpoint));
    st_save_progress ours{};
    const SaveProgress now = object->saves().progress();
    ours.bytes_done = now.bytes_done;
    ours.bytes_all = now.bytes_all;
    ours.waiting = now.waiting;
    ours.saved = now.saved;
    ours.failed = now.failed;
    ours.blocked_seconds = now.blocked_seconds;
    ours.write_seconds = now.write_seconds;
    ours.saved_step = object->saves().saved_step();
    give(progress, ours, "st_checkpoint_progress: progress");
  });
}
