// A host's views, checked before use.
#pragma once

#include <scaletrain/view.h>

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "base/host_view.h"
#include "parts/context.h"

namespace st::capi {

/// Whether a view is of the host's memory; most calls take no other.
inline bool is_of_host(const st_view& view) { return (view.device | view.reserved) == 0; }
/// The number that views of a context's device have; 0: the host has no arrays there.
int32_t device_number(const Context& context);
/// "cuda:1".
std::string device_name(const Context& context);
/// Checks where a view is: in the host's memory, or in that of `home`'s device if it is not null. Throws invalid_argument; `what` prefixes
/// the message: "st_tensor_wrap: view".
void check_device(std::string_view what, const st_view& view, const Context* home);
/// Checks that an array's bytes are in the memory of a context's device. Throws invalid_argument.
void check_reach(std::string_view what, const void* data, int64_t bytes, const Context& home);

/// Checks a view to be read: it is of the host's memory, dtype and rank exist, dims and strides are not negative, and bytes cover all that
/// the strides reach. `call` prefixes messages.
HostView read_view(std::string_view name, const st_view* view, const char* call);
/// The same for a call that also takes views of the device of `home`; null: it takes none. Such a view is row-major without gaps.
HostView read_view(std::string_view name, const st_view* view, const char* call, const Context* home);
/// The same for a view to be written: in addition, no two elements share memory.
HostView written_view(std::string_view name, const st_view* view, const char* call);
HostView written_view(std::string_view name, const st_view* view, const char* call, const Context* home);
void require_nested(const HostView& view, const char* call);

/// Copies the elements of an f32 view in row-major order. Throws invalid_argument, also for a NaN.
std::vector<float> floats_of(std::string_view name, const st_view* view, const char* call);

/// The named views of one call, in a list that is kept between calls, so that a step allocates nothing: those of a batch to be read, and
/// those of outputs to be written.
void take_views(std::vector<HostView>& views, int64_t n, const st_named_view* theirs, const char* call, const Context& home);
void take_written_views(std::vector<HostView>& views, int64_t n, const st_named_view* theirs, const char* call, const Context& home);

/// The named views of one call; does not allocate for a usual number of views.
class ViewList {
 public:
  using Look = HostView (*)(std::string_view name, const st_view* view, const char* call, const Context* home);
  ViewList(int64_t n, const st_named_view* views, Look look, const char* call, const Context& home);

  std::span<const HostView> views() const {
    return more_.empty() ? std::span<const HostView>(few_.data(), count_) : std::span<const HostView>(more_);
  }

 private:
  std::array<HostView, 8> few_;
  size_t count_ = 0;
  std::vector<HostView> more_;  // all of them, if there are more than 8
};

}  // namespace st::capi
