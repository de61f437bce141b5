// Checkpoints: a run's folder, saved into in the background, and loaded from, whatever happened to its newest one.
#pragma once

#include <scaletrain/checkpoint.h>

#include <chrono>
#include <scaletrain/context.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/pending.hpp>
#include <scaletrain/trainer.hpp>
#include <scaletrain/view.hpp>
#include <string>
#include <vector>

namespace scaletrain {

struct CheckpointOptions {
  bool read_only = false;  // also beside a process that saves; ranks other than 0 save their pieces by it (Trainer::save)
  int64_t keep_last = 3;   // 0: all
  int64_t keep_every = 0;  // and each whose step is a multiple; 0: none
  int64_t keep_best = 0;   // and the best so many by `best`
  std::string best;        // a number in the metadata or the training state
  bool best_is_higher = false;
  int32_t queue = 0;                // saves that may wait behind the one being written
  double bytes_per_second = 0;      // of the disk; 0: all there is
  int64_t file_bytes = 4294967296;  // 4 GiB; SWIG reads it
};

struct LoadReport {
  int64_t step = -1;
  std::string name;      // "step-00000120"
  std::string metadata;  // JSON
  int64_t read = 0;      // tensors
  std::vector<std::string> missing, unexpected;
  std::vector<std::string> skipped;  // newer checkpoints that are not whole, and why
  std::vector<std::string> changed;  // keys of the recipe, with both values
};

struct SaveProgress {
  int64_t bytes_done = 0, bytes_all = 0;  // 0 of 0: no save is being written
  int64_t waiting = 0;                    // saves behind it
  int64_t saved = 0, failed = 0;
  int64_t saved_step = -1;  // of the newest that is on the disk; -1: none
  double blocked_seconds = 0, write_seconds = 0;
};

/// The manager of one folder. A name "" means the newest checkpoint that is whole.
class Checkpoint : public detail::Handle<st_checkpoint, st_checkpoint_destroy> {
 public:
  Checkpoint(const Context& context, const std::string& folder, const CheckpointOptions& options = CheckpointOptions())
      : Handle(detail::Access::host(context)) {
    st_checkpoint_options raw;
    done(st_checkpoint_options_init(&raw, sizeof raw));
    raw.read_only = options.read_only ? 1 : 0;
    raw.keep_last = options.keep_last;
    raw.keep_every = options.keep_every;
    raw.keep_best = options.keep_best;
    raw.best = options.best.empty() ? nullptr : options.best.c_str();
    raw.best_is_higher = options.best_is_higher ? 1 : 0;
    raw.queue = options.queue;
    raw.bytes_per_second = options.bytes_per_second;
    raw.file_bytes = options.file_bytes;
    done(st_checkpoint_create(context.get(), folder.c_str(), &raw, out()));
  }

  /// The program's own buffers as they are now. metadata: a JSON object, or "". Returns when all is on the disk.
  void save(int64_t step, const Views& views, const std::string& metadata = "") const {
    done(st_checkpoint_save(get(), step, views.size(), views.raw(), given(metadata), nullptr));
  }
  /// Returns when they are copied; the files come to be meanwhile.
  Pending save_async(int64_t step, const Views& views, const std::string& metadata = "") const {
    Pending pending(host());
    done(st_checkpoint_save(get(), step, views.size(), views.raw(), given(metadata), pending.out()));
    return pending;
  }
  /// Into views of the tensors' dims; floating types are converted. When it throws, none has changed, but with options.overwrite.
  LoadReport load(const Views& views, const std::string& name = "", const ReadOptions& options = ReadOptions()) const {
    LoadReport report;
    load(views, name, options, report);
    return report;
  }
  /// Fills `report` also when it throws because names did not fit.
  void load(const Views& views, const std::string& name, const ReadOptions& options, LoadReport& report) const {
    for (const NamedView& named : views) detail::writable(("Checkpoint::load: " + named.name).c_str(), named.view);
    loaded(options, report, [&](const st_read_options* raw, st_load_report* found) {
      return st_checkpoint_load(get(), given(name), views.size(), views.raw(), raw, found);
    });
  }

  // JSON of the C header's shapes.
  std::string list() const { return text(st_checkpoint_list); }
  std::string inspect(const std::string& name = "") const { return told(st_checkpoint_inspect, name); }
  std::string verify(const std::string& name = "") const { return told(st_checkpoint_verify, name); }
  /// 32 hex digits; of a trainer's its digest().
  std::string hash(const std::string& name = "") const { return told(st_checkpoint_hash, name); }
  /// The same checkpoint as `shards` files of each kind, 0: as whole tensors, in a folder that is not there or empty.
  void reshard(const std::string& folder, int32_t shards, const std::string& name = "") const {
    done(st_checkpoint_reshard(get(), given(name), folder.c_str(), shards));
  }
  /// The weights as one safetensors file; everything: the optimizer's state too.
  void export_to(const std::string& path, bool everything = false, const std::string& name = "") const {
    done(st_checkpoint_export(get(), given(name), path.c_str(), everything ? 1 : 0));
  }

  /// Until no save is under way. Throws the error of one that nobody was told of yet, once. From any thread, as progress().
  void wait() const { done(st_checkpoint_wait(get(), -1)); }
  /// At most so long; false: one still is.
  bool wait(std::chrono::milliseconds most) const {
    const st_status status = st_checkpoint_wait(get(), most.count() < 0 ? 0 : most.count());
    if (status == ST_TIMEOUT) return false;
    done(status);
    return true;
  }
  SaveProgress progress() const {
    st_save_progress raw;
    done(st_save_progress_init(&raw, sizeof raw));
    done(st_checkpoint_progress(get(), &raw));
    SaveProgress now;
    now.bytes_done = raw.bytes_done;
    now.bytes_all = raw.bytes_all;
    now.waiting = raw.waiting;
    now.saved = raw.saved;
    now.failed = raw.failed;
    now.saved_step = raw.saved_step;
    now.blocked_seconds = raw.blocked_seconds;
    now.write_seconds = raw.write_seconds;
    return now;
  }

 private:
  friend class Model;
  friend class Trainer;

  static const char* given(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  template <class Call>
  std::string told(Call call, const std::string& name) const {
    return text([&](st_checkpoint* checkpoint, const char** answer) { return call(checkpoint, given(name), answer); });
  }
  /// What every load does: call(options, report), and the report.
  template <class Call>
  void loaded(const ReadOptions& options, LoadReport& report, const Call& call) const {
    const detail::RawReadOptions raw(options);
    st_load_report found;
    done(st_load_report_init(&found, sizeof found));
    const st_status status = reading([&] {
      const st_status ended = call(raw.get(), &found);
      report = copied(found);
      return ended;
    });
    done(status);
  }
  static LoadReport copied(const st_load_report& raw) {
    const auto texts = [](const char* const* begin, int64_t count) { return std::vector<std::string>(begin, begin + count); };
    LoadReport made;
    made.step = raw.step;
    if (raw.name != nullptr) made.name = raw.name;
    if (raw.metadata != nullptr) made.metadata = raw.metadata;
    made.read = raw.read;
    made.missing = texts(raw.missing, raw.missing_count);
    made.unexpected = texts(raw.unexpected, raw.unexpected_count);
    made.skipped = texts(raw.skipped, raw.skipped_count);
    made.changed = texts(raw.changed, raw.changed_count);
    return made;
  }
};

inline void Model::load(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options, LoadReport& report) const {
  checkpoint.loaded(options, report, [&](const st_read_options* raw, st_load_report* found) {
    return st_model_load(get(), checkpoint.get(), Checkpoint::given(name), raw, found);
  });
}
inline LoadReport Model::load(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options) const {
  LoadReport report;
  load(checkpoint, name, options, report);
  return report;
}

inline void Trainer::save(const Checkpoint& checkpoint, const std::string& metadata) const {
  done(st_trainer_save(get(), checkpoint.get(), Checkpoint::given(metadata), nullptr));
}
inline Pending Trainer::save_async(const Checkpoint& checkpoint, const std::string& metadata) const {
  Pending pending(host());
  done(st_trainer_save(get(), checkpoint.get(), Checkpoint::given(metadata), pending.out()));
  return pending;
}
inline void Trainer::save_every(const Checkpoint& checkpoint, int64_t steps, double minutes) const {
  done(st_trainer_save_every(get(), checkpoint.get(), steps, minutes));
}
inline void Trainer::save_no_more() const { done(st_trainer_save_every(get(), nullptr, 0, 0)); }
inline void Trainer::resume(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options, LoadReport& report) const {
  checkpoint.loaded(options, report, [&](const st_read_options* raw, st_load_report* found) {
    return st_trainer_resume(get(), checkpoint.get(), Checkpoint::given(name), raw, found);
  });
}
inline LoadReport Trainer::resume(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options) const {
  LoadReport report;
  resume(checkpoint, name, options, report);
  return report;
}

}  // namespace scaletrain
