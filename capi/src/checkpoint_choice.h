// Which checkpoint a call means: the one that it names, or the newest that is whole.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint_object.h"
#include "train/resume.h"

namespace st::capi {

/// Of a call that begins now: whether st_context_cancel has come since.
std::function<bool()> cancelled_from_now(const Context& context);

/// Calls use(reader) on the checkpoint `name`; NULL: on the newest that is whole. One that cannot be opened, or whose damage `use` meets,
/// is then passed over, with its reason in `skipped`, and counts for nothing in retention any more. Throws not_found where there is none,
/// or none of that name; corrupt, with the reasons, where none is whole. Other errors of `use` go on. The reader sees st_context_cancel.
void with_checkpoint(CheckpointObject& object, const char* name, std::vector<std::string>& skipped,
                     const std::function<void(const CheckpointReader&)>& use);

/// The same for a load: its report is made anew, kept by the object, and given to the host (unless NULL) also where the load ends in an
/// error, with what it had found by then.
void load_from(CheckpointObject& object, const char* name, st_load_report* report,
               const std::function<void(const CheckpointReader&, LoadReport&)>& load);

/// The same for a load that all ranks of a group make together (trainer.h, is_in_pieces): of the newest, rank 0 says which, and what is not
/// whole for one of them is passed over by all. `load` opens it, and its errors are the same on all ranks.
void load_together(CheckpointObject& object, Communicator& ranks, const char* name, st_load_report* report,
                   const std::function<void(const OpenCheckpoint&, LoadReport&)>& load);

/// What ranks that load together compare of it: the checkpoint's name, empty for the newest.
std::string name_meant(const CheckpointObject& object, const char* name);

/// The folder of the checkpoint `name`; NULL: the newest that has a manifest.
std::string folder_of(CheckpointObject& object, const char* name);

}  // namespace st::capi
