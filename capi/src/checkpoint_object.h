// A checkpoint folder, and the saves that a trainer makes by itself.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>
#include <string>
#include <utility>

#include "checkpoint/checkpoint_manager.h"
#include "load_report.h"
#include "object_handles.h"
#include "train/context.h"

namespace st::capi {

struct CheckpointObject final : Object, Trimmable {
  explicit CheckpointObject(std::string path) : folder(std::move(path)) {}

  void trim() override { saves().trim(); }

  /// Throws wrong_state where the handle only reads; `together`: of what ranks save together it writes all the same. Of several threads at
  /// once.
  CheckpointManager& to_save(const char* call, bool together = false) const {
    if (together) return saves();
    require(manager != nullptr, Code::wrong_state, call, ": ", folder.path(), " was opened read_only; open it without");
    return *manager;
  }
  CheckpointManager& saves() const { return manager ? *manager : *beside; }

  std::shared_ptr<Context> context;
  std::unique_ptr<Workers> workers;
  RunFolder folder;
  bool is_one = false;                         // the folder is a checkpoint itself
  WriteOptions writing;                        // of what is written beside the manager's saves
  LoadReport report;                           // of the last load
  std::unique_ptr<CheckpointManager> manager;  // null: read_only
  std::unique_ptr<CheckpointManager> beside;   // then: for what ranks save together, of which this is not rank 0
};

/// What a trainer saves by itself, and what became of it.
struct BackgroundSaves {
  std::shared_ptr<CheckpointObject> checkpoint;  // null: nothing
  int64_t steps = 0;                             // 0: not by steps
  double minutes = 0, last = 0;                  // 0: not by time; when the last save began
  std::string error;                             // that the last step's report tells
};

ST_HANDLE(st_checkpoint, checkpoint, CheckpointObject)

}  // namespace st::capi
