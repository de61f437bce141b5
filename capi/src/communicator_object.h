// A rank of a group.
#pragma once

#include <scaletrain/scaletrain.h>

#include <atomic>
#include <memory>

#include "base/work_queue.h"
#include "comm/communicator.h"
#include "object_handles.h"
#include "train/context.h"
#include "train/trainer.h"

namespace st::capi {

struct CommunicatorObject final : Object {
  std::shared_ptr<Context> context;
  std::atomic<uint64_t> cancels{0};               // of the context, when the call was made that is under way
  std::atomic<const Trainer*> at_step = nullptr;  // a rank's, whose step is under way: its cancels end waits too
  std::unique_ptr<Communicator> ranks;
  WorkQueue queue;  // of what is pending; it ends first
};

ST_HANDLE(st_communicator, communicator, CommunicatorObject)

}  // namespace st::capi
