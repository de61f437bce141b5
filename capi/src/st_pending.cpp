#include "guard.h"
#include "pending_object.h"

using namespace st;
using namespace st::capi;

st_status st_pending_wait(st_pending* pending, int64_t milliseconds) {
  return guard([&] {
    const Use object(peek(pending));
    require(object->work->wait(milliseconds), Code::timeout, "st_pending_wait: still running after ", milliseconds,
            " ms; call again, or pass a negative number to wait without a limit");
  });
}

st_status st_pending_poll(st_pending* pending, int32_t* done) {
  return guard([&] { given(done, "st_pending_poll: done") = peek(pending)->work->is_done() ? 1 : 0; });
}

st_status st_pending_destroy(st_pending* pending) { return drop(pending); }
